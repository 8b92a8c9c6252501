import type { Connection } from '../../model/kinds.ts';
import { isDeleting } from '../../model/crd.ts';
import { EXPORTED_LABEL, TRUE } from '../../model/markers.ts';
import type { Side, World } from '../world.ts';
import { nodes } from './chart.ts';
import { discoverExports, listExportedCrds, type ExportList } from './exports.ts';
import { emptySinceAfter, whichSource, type Source } from './which-source.ts';

/** What the provider offers, and from which source that was learnt. */
export interface Exports extends ExportList {
  readonly source: Source;
  readonly emptySince: string | undefined;
  /** Auto found no labelled CRD: worth saying, because it offers everything (L18). */
  readonly fellBack: boolean;
}

/** What a Forbidden list of CRDs leaves to do under Auto (L19). */
export const autoAdvice = (connection: Connection): string =>
  connection.spec.schema.source === 'Auto' ? ', or set spec.schema.source: OpenAPI' : '';

/** Asks for the exports (spec §2.4). A list that fails is thrown: it is never taken for an empty one. */
export async function discover(world: World, connection: Connection, provider: Side): Promise<Exports> {
  const { spec, status } = connection;
  const asking = { client: provider.client, signal: world.signal };
  const configured = spec.schema.source;
  const labelled = configured === 'OpenAPI' ? undefined : await listExportedCrds(asking);
  const source = whichSource({
    configured,
    active: status.activeSchemaSource,
    labelled: labelled?.apis.length ?? 0,
    emptySince: status.exportsEmptySince,
    bound: labelled?.apis.length === 0 && (await isBound(world, connection)),
    nowMs: world.clock.now(),
  });
  const list =
    source === 'CRD' && labelled !== undefined ? labelled : await discoverExports(asking, status.exportedAPIs);
  world.trace.step(nodes.discovery, `${source}: ${list.apis.length} APIs`);
  return { ...list, source, emptySince: emptiness(world, connection, list), fellBack: fellBack(configured, source) };
}

const fellBack = (configured: string, source: Source): boolean => configured === 'Auto' && source === 'OpenAPI';

/** Only a complete list tells that there is nothing. */
function emptiness(world: World, { status }: Connection, { apis, complete }: ExportList): string | undefined {
  if (apis.length === 0 && !complete) return status.exportsEmptySince;
  return emptySinceAfter(apis.length, status.exportsEmptySince, world.clock.now());
}

/** True when a binding that is not deleting refers to the Connection. */
async function isBound(world: World, connection: Connection): Promise<boolean> {
  const [clusterBindings, bindings] = await Promise.all([world.reads.clusterBindings(), world.reads.bindings()]);
  return [...clusterBindings.value, ...bindings.value].some(
    (binding) => binding.spec.connectionRef.name === connection.metadata.name && !isDeleting(binding),
  );
}

/**
 * Says aloud that every API of the provider is offered now, and how to choose (L18), and under Auto that only labelled ones
 * are from now on.
 */
export async function announceSource(world: World, connection: Connection, exports: Exports): Promise<void> {
  const { activeSchemaSource: before } = connection.status;
  if (before === exports.source) return;
  if (exports.fellBack) await world.events.warn(connection.raw, 'SchemaSourceChanged', fallbackText);
  else if (before !== undefined && connection.spec.schema.source === 'Auto') {
    await world.events.warn(connection.raw, 'SchemaSourceChanged', labelledText);
  }
}

/** Also part of the Ready message while it lasts. */
export const fallbackText =
  `no CustomResourceDefinition of the provider carries ${EXPORTED_LABEL}: "${TRUE}", so every API that it serves is ` +
  'offered (schema.source Auto): label CRDs there, or set spec.schema.source';

const labelledText =
  `CustomResourceDefinitions of the provider carry ${EXPORTED_LABEL}: "${TRUE}" now, so only these are offered from now on ` +
  '(schema.source Auto): label the others as well, or set spec.schema.source: OpenAPI';

/** Part of the Ready message while a part of the provider cannot tell what it serves. */
export const silentText = (silent: readonly string[]): string | undefined =>
  silent.length === 0
    ? undefined
    : `left out as they are, because the provider cannot tell what they serve (an aggregated API may be down): ${silent.join(', ')}`;
