import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import type { Finding } from '../../replay/examine.ts';
import type { ReconcileRequest } from '../../model/request.ts';
import { reconcileMessage, workMessage } from '../../queue/queues.ts';
import { CliError } from '../exit-codes.ts';
import { KEY_HELP, keyRequest } from '../keys.ts';
import { answer, duration, runIn, withExamples, type Host, type Session } from '../session.ts';
import { withProgress } from '../terminal.ts';

interface ReconcileOptions {
  readonly wait: boolean;
  readonly waitFor: number;
}

const WAIT_SECONDS = 60;
/** Between two looks, ms. */
const LOOK_MS = 500;

export function addReconcile(program: Command, host: Host): void {
  const command = program
    .command('reconcile')
    .description(`Enqueues one key, an API's sweep, or a sweep of a whole cluster, now. ${KEY_HELP}`)
    .argument('<cluster>', 'name or UID')
    .argument('[api]', 'what kind of object; without a name: a sweep of that API')
    .argument('[name]', '[NAMESPACE/]NAME')
    .option('--wait', 'until a reconcile of the key would change nothing more; keys only', false)
    .option('--wait-for <time>', 'how long at most', duration, WAIT_SECONDS)
    .action(runIn<ReconcileOptions>(host, reconcile));
  withExamples(
    command,
    { args: 'reconcile shop widgets.example.org default/blue --wait', says: 'one instance, to its end' },
    { args: 'reconcile shop widgets.example.org', says: 'a sweep of one API' },
    { args: 'reconcile shop', says: 'a sweep of everything' },
  );
}

async function reconcile(session: Session, [name = '', api, object]: readonly string[], options: ReconcileOptions) {
  if (object === undefined && options.wait)
    throw new CliError('usage', '--wait needs a key: a sweep ends when its keys have');
  const known = api === undefined || object === undefined ? undefined : keyRequest('unknown', api, object);
  const { cell, limit } = session;
  const { uid: cluster, name: clusterName, paused } = await cell.fleet.open(name, limit());
  if (paused)
    throw new CliError(
      'refused',
      `${clusterName} is paused: what is enqueued is dropped. See: kbind-fleet clusters resume`,
    );
  const id = `cli/${randomUUID()}`;
  if (known === undefined) {
    const apis = api === undefined ? {} : { apis: [api] };
    const { queue, message } = workMessage({ v: 1, type: 'sweep', cluster, ...apis, id, retry: true });
    await cell.app.queues.send(queue, [message]);
    const enqueued = `sweep of ${api ?? 'every API'}`;
    return answer(
      'reconcile',
      { cluster: clusterName, enqueued },
      { text: `Enqueued: ${enqueued}.`, names: [clusterName] },
    );
  }
  // A chain of its own: should the object be refused again, that leaves a letter of its own too.
  const request = { ...known, cluster, firstFailure: Date.now() };
  const { queue, message } = reconcileMessage(request, id);
  await cell.app.queues.send(queue, [message]);
  const enqueued = `${api} ${object}`;
  const outcome = options.wait ? await untilSettled(session, request, options.waitFor) : undefined;
  const data = { cluster: clusterName, enqueued, ...(outcome === undefined ? {} : { outcome }) };
  const settled = outcome === undefined ? '' : `\n${outcome.prospect}: ${outcome.detail}`;
  const fine = outcome === undefined || outcome.prospect === 'healed' || outcome.prospect === 'gone';
  return answer('reconcile', data, {
    text: `Enqueued: ${enqueued}.${settled}`,
    names: [enqueued],
    exit: fine ? 'ok' : 'trouble',
  });
}

/** Looks until a dry run would write nothing more; what still would when the time is up is the outcome. */
function untilSettled(
  { cell, terminal, limit }: Session,
  request: ReconcileRequest,
  seconds: number,
): Promise<Finding> {
  const deadline = Date.now() + seconds * 1000;
  return withProgress(terminal, 'waiting', async ({ tell }) => {
    for (;;) {
      const { finding } = await cell.app.explain(request, { signal: limit() });
      if (finding.prospect !== 'would-act' || Date.now() >= deadline) return finding;
      tell(finding.detail);
      await delay(LOOK_MS);
    }
  });
}
