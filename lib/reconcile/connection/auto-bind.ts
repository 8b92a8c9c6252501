import { resources, type Json } from '../../model/api.ts';
import type { AnyBinding, Connection } from '../../model/kinds.ts';
import { MANAGED_LABEL, TRUE } from '../../model/markers.ts';
import { confirmSides } from '../side.ts';
import type { Side, World } from '../world.ts';
import { nodes } from './chart.ts';
import type { Exports } from './discovery.ts';
import { believeAgain } from './status.ts';
import { wantedNames, whichAutoBinding, type AutoBindingFacts } from './which-auto-binding.ts';

interface AutoBinding {
  readonly connection: Connection;
  readonly provider: Side;
  readonly exports: Exports;
}

/**
 * Maintains the ClusterBinding of a Connection with autoBind. Answers with what the Ready message should add: what a person
 * has to know or do.
 */
export async function maintainAutoBinding(world: World, auto: AutoBinding): Promise<string | undefined> {
  const { connection, exports } = auto;
  const found = await findNamesake(world, connection);
  const facts: AutoBindingFacts = {
    connection,
    found,
    exports: exports.apis.map(({ name }) => name),
    complete: exports.complete,
    nowMs: world.clock.now(),
  };
  const step = whichAutoBinding(facts);
  world.trace.step(nodes.autoBind, step);
  const name = `ClusterBinding ${connection.metadata.name}`;
  if (step === 'create') await create(world, auto, wantedNames(facts));
  if (step === 'update' && found !== undefined) await update(world, auto, { found, names: wantedNames(facts) });
  if (step === 'delete' && found !== undefined) await deleteEmpty(world, auto, found);
  if (step === 'leave it to its owner') return refuse(world, connection, name);
  if (step === 'wait for a second empty list') return `${name} of autoBind stays until a second list shows no exports`;
  if (step === 'no longer maintained')
    return `${name} was made by autoBind and is no longer maintained: delete it if unwanted`;
  return undefined;
}

/** The ClusterBinding that bears the Connection's name. */
export async function findNamesake(world: World, { metadata }: Connection): Promise<AnyBinding | undefined> {
  const { value } = await world.reads.clusterBindings();
  return value.find((binding) => binding.metadata.name === metadata.name);
}

async function create(world: World, auto: AutoBinding, names: readonly string[]): Promise<void> {
  const { metadata, raw } = auto.connection;
  await confirmSides(auto.provider, world.consumer);
  await world.consumer.client.create(
    resources.clusterBindings,
    {
      apiVersion: raw.apiVersion,
      kind: 'ClusterBinding',
      metadata: {
        name: metadata.name,
        labels: { [MANAGED_LABEL]: TRUE },
        ownerReferences: [{ apiVersion: raw.apiVersion, kind: 'Connection', name: metadata.name, uid: metadata.uid }],
      },
      spec: { connectionRef: { name: metadata.name }, apis: names.map((name) => ({ name })) },
    },
    { signal: world.signal, belief: await believeAgain(world, auto) },
  );
}

/** The list of APIs is ours; the rest of the spec belongs to whoever edited it. */
async function update(
  world: World,
  auto: AutoBinding,
  change: { readonly found: AnyBinding; readonly names: readonly string[] },
): Promise<void> {
  const { raw } = change.found;
  const spec = {
    ...(raw.spec as object),
    apis: change.names.map((name) => ({ name })),
  } as unknown as Json;
  await confirmSides(auto.provider, world.consumer);
  const options = { signal: world.signal, belief: await believeAgain(world, auto) };
  await world.consumer.client.update(resources.clusterBindings, { ...raw, spec }, options);
}

async function deleteEmpty(world: World, auto: AutoBinding, found: AnyBinding): Promise<void> {
  await confirmSides(auto.provider, world.consumer);
  await world.events.warn(
    auto.connection.raw,
    'NothingExported',
    `the provider exports nothing since ${auto.connection.status.exportsEmptySince ?? ''}: ClusterBinding ${found.metadata.name} of autoBind is deleted`,
  );
  await requestDeletion(world, found);
}

/** DELETE of the very ClusterBinding that was read. */
export async function requestDeletion(world: World, { metadata }: AnyBinding): Promise<void> {
  const { uid, resourceVersion, name } = metadata;
  await world.consumer.client.delete(
    resources.clusterBindings,
    { name },
    { uid, resourceVersion },
    { signal: world.signal },
  );
}

async function refuse(world: World, connection: Connection, name: string): Promise<string> {
  const message =
    `${name} exists and was not made by autoBind of this Connection, so it is left alone: ` +
    'delete or rename it, or set spec.autoBind: false';
  await world.events.warn(connection.raw, 'ForeignObjectExists', message);
  return message;
}
