import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import { SILENT_AFTER_MS } from '../../fleet/registry.ts';
import { keyText, keyOf } from '../../model/api.ts';
import { findCondition, type Condition } from '../../model/conditions.ts';
import { instanceResource } from '../../model/crd.ts';
import { bindingIsReady, connectionIsReady } from '../../model/may-act.ts';
import type { AnyBinding } from '../../model/kinds.ts';
import { toKbindError } from '../../model/errors.ts';
import type { World } from '../../reconcile/world.ts';
import { askClusters, type Asked } from '../clusters-at-once.ts';
import { age, print, table } from '../output.ts';
import type { ResultOf } from '../results.ts';
import { answer, runIn, withExamples, type Host, type Session } from '../session.ts';
import { note } from '../terminal.ts';
import { chosen } from './clusters.ts';

type ClusterStatus = ResultOf<'status'>['clusters'][number];
type Seen = Pick<ClusterStatus, 'uid' | 'connections' | 'bindings' | 'instances' | 'notReady'>;

interface StatusOptions {
  readonly watch: boolean;
  readonly deep: boolean;
}

const WATCH_MS = 5_000;

export function addStatus(program: Command, host: Host): void {
  const command = program
    .command('status')
    .description(
      'Is everything in sync? Connections, bindings and instances of each cluster, worst first, and what lies in the queues. ' +
        'Instance counts are those of the last backstop (every ten minutes).',
    )
    .argument('[cluster]', 'one cluster only')
    .option('--watch', 'again every five seconds, until interrupted', false)
    .option('--deep', 'count instances that are being deleted as well: lists all of them', false)
    .action(runIn<StatusOptions>(host, status));
  withExamples(
    command,
    { args: 'status', says: 'the whole fleet' },
    { args: 'status shop --deep -o yaml', says: 'one cluster, for a program' },
  );
}

async function status(session: Session, names: readonly string[], options: StatusOptions) {
  let ended = false;
  const interrupted = new AbortController();
  const stop = (): void => {
    ended = true;
    interrupted.abort();
  };
  if (options.watch) process.once('SIGINT', stop);
  for (;;) {
    const given = await look(session, names, options.deep);
    if (!options.watch || ended) return given;
    print(session.terminal, session.options.output, given);
    await delay(WATCH_MS, undefined, { signal: interrupted.signal }).catch(() => undefined);
  }
}

async function look(session: Session, names: readonly string[], deep: boolean) {
  const { cell, terminal } = session;
  const entries = chosen(await cell.fleet.entries(), names);
  const [asked, queues] = await Promise.all([
    askClusters(session, { what: 'asking', entries }, async ({ name }, signal) => {
      const { uid } = await cell.fleet.open(name, signal);
      const seen = await cell.app.inspect(uid, { signal }, (world) => summarize(world, deep));
      return { uid, ...seen };
    }),
    depths(session),
  ]);
  const now = Date.now();
  const clusters = asked
    .map((one) => statusOf(one, now))
    .sort((a, b) => b.trouble - a.trouble || (a.name < b.name ? -1 : 1));
  const data: ResultOf<'status'> = { cell: cell.name, ...(queues === undefined ? {} : { queues }), clusters };
  const exit = clusters.some(({ problem }) => problem !== undefined) ? 'trouble' : 'ok';
  return answer('status', data, { text: textOf(data, terminal.colors), names: clusters.map(({ name }) => name), exit });
}

async function depths({ cell, terminal }: Session): Promise<Record<string, number> | undefined> {
  try {
    return await cell.depths();
  } catch (error) {
    note(terminal, `Queues: ${toKbindError(error).message}`);
    return undefined;
  }
}

/** What one cluster says of itself: four lists. */
async function summarize(world: World, deep: boolean): Promise<Omit<Seen, 'uid'>> {
  const { reads } = world;
  const [connections, clusterBindings, bindings] = await Promise.all([
    reads.connections(),
    reads.clusterBindings(),
    reads.bindings(),
  ]);
  const all = [...clusterBindings.value, ...bindings.value];
  const deleting = deep ? await countDeleting(world) : undefined;
  return {
    connections: { total: connections.value.length, ready: connections.value.filter(connectionIsReady).length },
    bindings: { total: all.length, ready: all.filter(bindingIsReady).length },
    instances: { ...instancesOf(all), ...(deleting === undefined ? {} : { deleting }) },
    notReady: [
      ...connections.value.filter((one) => !connectionIsReady(one)).map((one) => whyNot('Connection', one)),
      ...all.filter((one) => !bindingIsReady(one)).map((one) => whyNot(one.kind, one)),
    ],
  };
}

function instancesOf(bindings: readonly AnyBinding[]): {
  total: number;
  synced: number;
  pending: number;
  conflicting: number;
} {
  const counts = { total: 0, synced: 0, pending: 0, conflicting: 0 };
  for (const { instances = 0, synced = 0, pending = 0, conflictCount } of bindings.flatMap(
    (one) => one.status.boundAPIs ?? [],
  )) {
    counts.total += instances;
    counts.synced += synced;
    counts.pending += pending;
    counts.conflicting += conflictCount;
  }
  return counts;
}

interface WithConditions {
  readonly metadata: AnyBinding['metadata'];
  readonly raw: AnyBinding['raw'];
  readonly status: { readonly conditions?: readonly Condition[] };
}

function whyNot(kind: string, { metadata, raw, status }: WithConditions): string {
  const ready = findCondition(status.conditions, 'Ready');
  const why =
    metadata.deletionTimestamp === undefined
      ? `${ready?.reason ?? 'Pending'}: ${ready?.message ?? 'not looked at yet'}`
      : 'being deleted';
  return `${kind} ${keyText(keyOf(raw))}: ${why}`;
}

async function countDeleting({ consumer, reads, signal }: World): Promise<number> {
  let deleting = 0;
  for (const crd of (await reads.managedCrds()).value) {
    const ref = instanceResource(crd);
    if (ref === undefined) continue;
    const { items } = await consumer.client.listAllMetadata(ref, { signal });
    deleting += items.filter(({ metadata }) => metadata.deletionTimestamp !== undefined).length;
  }
  return deleting;
}

function statusOf(asked: Asked<Seen>, nowMs: number): ClusterStatus {
  const { name, uid, paused, activity } = asked.entry;
  const heardAt = activity?.heardAt;
  const forwarder = heardAt === undefined ? 'unknown' : nowMs - heardAt > SILENT_AFTER_MS ? 'silent' : 'alive';
  const base = {
    name,
    ...(uid === undefined ? {} : { uid }),
    paused,
    forwarder,
    ...(activity?.sweptAt === undefined
      ? {}
      : { lagSeconds: Math.max(0, Math.round((nowMs - activity.sweptAt) / 1000)) }),
  } as const;
  if ('problem' in asked) return { ...base, problem: asked.problem, trouble: TROUBLE.unreachable };
  return { ...base, ...asked.value, trouble: troubleOf(asked.value) + (forwarder === 'silent' ? TROUBLE.silent : 0) };
}

/** How bad things are: worse ones come first, more of them before fewer. */
const TROUBLE = { unreachable: 1_000_000, connection: 10_000, silent: 5_000, binding: 1_000, conflict: 10, pending: 1 };

function troubleOf({ connections, bindings, instances }: Seen): number {
  const lacking = (of: { total: number; ready: number } | undefined): number =>
    of === undefined ? 0 : of.total - of.ready;
  return (
    lacking(connections) * TROUBLE.connection +
    lacking(bindings) * TROUBLE.binding +
    (instances?.conflicting ?? 0) * TROUBLE.conflict +
    (instances?.pending ?? 0) * TROUBLE.pending
  );
}

function textOf({ cell, queues, clusters }: ResultOf<'status'>, colors: Session['terminal']['colors']): string {
  const ratio = (of: { total: number; ready: number } | undefined): string => {
    if (of === undefined) return '-';
    const text = `${of.ready}/${of.total}`;
    return of.ready === of.total ? text : colors.red(text);
  };
  const rows = clusters.map(({ name, paused, problem, connections, bindings, instances, forwarder, lagSeconds }) => [
    name,
    problem === undefined ? (paused ? 'paused' : 'ok') : colors.red('no answer'),
    ratio(connections),
    ratio(bindings),
    ...(['total', 'synced', 'pending', 'conflicting', 'deleting'] as const).map((of) => String(instances?.[of] ?? '-')),
    forwarder,
    lagSeconds === undefined ? '-' : age(lagSeconds * 1000),
    problem ?? '',
  ]);
  const headings = [
    'NAME',
    'STATE',
    'CONNECTIONS',
    'BINDINGS',
    'INSTANCES',
    'SYNCED',
    'PENDING',
    'CONFLICTS',
    'DELETING',
  ];
  const lines = clusters.flatMap(({ name, notReady = [] }) => notReady.map((text) => `  ${name}: ${text}`));
  const inQueues = Object.entries(queues ?? {}).map(([name, count]) => `${name} ${count}`);
  return [
    `Cell ${cell}${inQueues.length === 0 ? '' : `; in queues: ${inQueues.join(', ')}`}`,
    table([...headings, 'FORWARDER', 'LAG', 'PROBLEM'], rows, 'No clusters.'),
    ...(lines.length === 0 ? [] : ['Not Ready:', ...lines]),
  ].join('\n');
}
