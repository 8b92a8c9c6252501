import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import { keyText, resources, type KubeObject, type ObjectKey, type ResourceRef } from '../../model/api.ts';
import { instanceResource } from '../../model/crd.ts';
import { isError } from '../../model/errors.ts';
import { SYNCER_FINALIZER } from '../../model/markers.ts';
import type { KubeClient } from '../../kube/types.ts';
import { parseBinding } from '../../model/kinds.ts';
import { withClient } from '../clients.ts';
import { CliError } from '../exit-codes.ts';
import { table } from '../output.ts';
import type { ResultOf } from '../results.ts';
import { answer, duration, runIn, withExamples, type Host, type Session } from '../session.ts';
import { confirm, note, withProgress } from '../terminal.ts';

interface UnbindOptions {
  readonly dryRun: boolean;
  readonly yes: boolean;
  readonly waitFor: number;
}

const WAIT_SECONDS = 600;
const LOOK_MS = 1_000;

export function addUnbind(program: Command, host: Host): void {
  const command = program
    .command('unbind')
    .description(
      'Deletes a binding after showing what goes with it: every instance that it alone covers is drained, so its copy on the ' +
        'provider is deleted. Follows the drain to its end.',
    )
    .argument('<cluster>', 'name or UID')
    .argument('<binding>', 'NAME of a ClusterBinding, or NAMESPACE/NAME of a Binding')
    .option('--dry-run', 'only show what would be deleted', false)
    .option('--yes', 'do not ask', false)
    .option('--wait-for <time>', 'how long the drain is followed', duration, WAIT_SECONDS)
    .action(runIn<UnbindOptions>(host, unbind));
  withExamples(command, { args: 'unbind shop demo --dry-run', says: 'what would be deleted' });
}

type Result = ResultOf<'unbind'>;

async function unbind(session: Session, [name = '', text = '']: readonly string[], options: UnbindOptions) {
  const { cell, terminal, limit } = session;
  const { target, name: cluster } = await cell.fleet.open(name, limit());
  const [bindingName = '', namespace] = text.split('/').reverse();
  const ref = namespace === undefined ? resources.clusterBindings : resources.bindings;
  const key: ObjectKey = namespace === undefined ? { name: bindingName } : { namespace, name: bindingName };
  return withClient(session, target, async (client) => {
    const object = await client.find(ref, key, { signal: limit() });
    if (object === undefined) throw new CliError('notFound', `${cluster} has no ${ref.kind} ${keyText(key)}`);
    const apis = await withProgress(terminal, 'counting instances', () => instancesOf(client, object, limit()));
    const binding = `${ref.kind} ${keyText(key)}`;
    const shown = table(
      ['API', 'INSTANCES'],
      apis.map(({ api, instances }) => [api, String(instances)]),
      'No APIs.',
    );
    const told = (state: Result['state']) =>
      answer(
        'unbind',
        { cluster, binding, apis, state },
        {
          text: `${binding} of ${cluster}: ${state}\n${shown}`,
          names: [text],
          exit: state === 'deleting' ? 'trouble' : 'ok',
        },
      );
    if (options.dryRun) return told('would delete');
    note(terminal, shown);
    const count = apis.reduce((sum, { instances }) => sum + instances, 0);
    await confirm(
      terminal,
      `Delete ${binding} and drain ${count} instances (those that another binding covers stay)?`,
      options.yes,
    );
    await client.delete(ref, key, object.metadata, { signal: limit() });
    return told(
      (await followDrain(session, client, { ref, key, uid: object.metadata.uid }, options.waitFor))
        ? 'gone'
        : 'deleting',
    );
  });
}

/** Instances with our finalizer: those that a drain may be about. */
async function instancesOf(client: KubeClient, object: KubeObject, signal: AbortSignal): Promise<Result['apis']> {
  const { spec, metadata, kind } = parseBinding(object, object.kind === 'Binding' ? 'Binding' : 'ClusterBinding');
  const counts: Result['apis'] = [];
  for (const { name } of spec.apis) {
    const crd = await client.find(resources.crds, { name }, { signal });
    const ref = crd === undefined ? undefined : instanceResource(crd);
    if (ref === undefined) continue;
    const scope = kind === 'Binding' && ref.namespaced ? { namespace: metadata.namespace } : {};
    const { items } = await client.listAllMetadata(ref, { signal, ...scope });
    counts.push({
      api: name,
      instances: items.filter((one) => one.metadata.finalizers?.includes(SYNCER_FINALIZER)).length,
    });
  }
  return counts;
}

interface Followed {
  readonly ref: ResourceRef;
  readonly key: ObjectKey;
  readonly uid: string;
}

/** True once the binding is gone; false when the time is up before that. Interrupting it changes nothing: the drain goes on. */
function followDrain(
  { terminal, limit }: Session,
  client: KubeClient,
  { ref, key, uid }: Followed,
  seconds: number,
): Promise<boolean> {
  const deadline = Date.now() + seconds * 1000;
  return withProgress(terminal, 'draining', async ({ tell }) => {
    for (;;) {
      const object = await client.find(ref, key, { signal: limit() }).catch((error: unknown) => {
        if (isError(error, 'unavailable', 'throttled')) return 'unknown' as const;
        throw error;
      });
      if (object === undefined || (object !== 'unknown' && object.metadata.uid !== uid)) return true;
      if (Date.now() >= deadline) return false;
      if (object !== 'unknown') tell(drainText(object));
      await delay(LOOK_MS);
    }
  });
}

function drainText({ status }: KubeObject): string {
  const { conditions = [] } = (status ?? {}) as { readonly conditions?: readonly { type: string; message: string }[] };
  return conditions.find(({ type }) => type === 'Ready')?.message ?? 'waiting';
}
