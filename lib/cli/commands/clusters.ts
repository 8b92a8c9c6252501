import { Option, type Command } from 'commander';
import { workMessage } from '../../queue/queues.ts';
import { askClusters } from '../clusters-at-once.ts';
import { withClient } from '../clients.ts';
import { CliError } from '../exit-codes.ts';
import type { FleetEntry } from '../fleet/fleet.ts';
import { age, table } from '../output.ts';
import { holderIn, preflight, type Preflight } from '../preflight.ts';
import { answer, runIn, withExamples, type Host, type Session } from '../session.ts';
import { confirm, note, withProgress } from '../terminal.ts';
import { countOurs } from '../what-is-ours.ts';
import { addAdd } from './clusters-add.ts';

export function addClusters(program: Command, host: Host): void {
  const clusters = program.command('clusters').description('The consumer clusters of this fleet.');
  withExamples(clusters, { args: 'clusters list', says: 'all of them' });
  withExamples(
    clusters.command('list').description('Lists the fleet without asking any cluster.').action(runIn(host, list)),
    { args: 'clusters list', says: 'all of them' },
    { args: 'clusters list -o name', says: 'their names, for a script' },
  );
  addAdd(clusters, host);
  addRemove(clusters, host);
  addPauseAndResume(clusters, host);
  withExamples(
    clusters
      .command('check')
      .description('Asks clusters whether all is there: reachable, ours, every permission, our CRDs.')
      .argument('[names...]', 'these only')
      .action(runIn(host, check)),
    { args: 'clusters check', says: 'the whole fleet' },
    { args: 'clusters check shop --timeout 5', says: 'one cluster, for at most five seconds' },
  );
}

function addRemove(clusters: Command, host: Host): void {
  const remove = clusters
    .command('remove')
    .description('Takes a cluster out of the fleet. Refused while objects there hold our finalizers: unbind first.')
    .argument('<name>', 'the cluster')
    .addOption(
      new Option(
        '--finalizers <what>',
        'leave the finalizers where they are: such objects cannot be deleted then',
      ).choices(['keep']),
    )
    .option('--yes', 'do not ask', false)
    .action(runIn<{ finalizers?: string; yes: boolean }>(host, remove_));
  withExamples(remove, { args: 'clusters remove shop --yes', says: 'refused while it is in use', exit: 'refused' });
}

function addPauseAndResume(clusters: Command, host: Host): void {
  withExamples(
    clusters
      .command('pause')
      .description('Stops working on a cluster: its messages are dropped and counted.')
      .argument('<name>', 'the cluster')
      .action(runIn(host, pause)),
    { args: 'clusters pause shop', says: 'within five seconds' },
  );
  withExamples(
    clusters
      .command('resume')
      .description('Works on a cluster again; it is swept for what was missed.')
      .argument('<name>', 'the cluster')
      .action(runIn(host, resume)),
    { args: 'clusters resume shop', says: 'swept 8 s later' },
  );
}

async function list({ cell }: Session) {
  const entries = await cell.fleet.entries();
  const now = Date.now();
  const data = {
    fleet: cell.fleet.place,
    clusters: entries.map(({ name, uid, paused, labels, activity, problem }) => ({
      name,
      ...(uid === undefined ? {} : { uid }),
      paused,
      ...(labels === undefined ? {} : { labels: { ...labels } }),
      ...(activity?.heardAt === undefined ? {} : { heardAt: activity.heardAt }),
      ...(problem === undefined ? {} : { problem }),
    })),
  };
  const rows = data.clusters.map(({ name, uid = '-', paused, heardAt, problem }) => [
    name,
    problem === undefined ? (paused ? 'paused' : 'active') : 'unusable',
    heardAt === undefined ? '-' : age(now - heardAt),
    uid,
    problem ?? '',
  ]);
  const text = table(['NAME', 'STATE', 'HEARD', 'UID', 'PROBLEM'], rows, `No clusters in ${cell.fleet.place}.`);
  return answer('clusters list', data, { text, names: entries.map(({ name }) => name) });
}

async function check(session: Session, names: readonly string[]) {
  const entries = chosen(await session.cell.fleet.entries(), names);
  const asked = await askClusters(session, { what: 'checking', entries }, async ({ name }, signal) => {
    const startedAt = performance.now();
    const { target } = await session.cell.fleet.open(name, signal);
    const found = await withClient(session, target, (client) => preflight(client, holderIn(session.cell), signal));
    return { ...found, tookMs: Math.round(performance.now() - startedAt) };
  });
  const clusters = asked.map((one) => {
    const { uid, checks, tookMs }: Preflight & { tookMs: number } =
      'value' in one
        ? one.value
        : { uid: undefined, tookMs: 0, checks: [{ check: 'reachable', ok: false, detail: one.problem }] };
    const ok = checks.every((each) => each.ok);
    return { name: one.entry.name, ...(uid === undefined ? {} : { uid }), ok, tookMs, checks: [...checks] };
  });
  const { colors } = session.terminal;
  const rows = clusters.map(({ name, ok, checks, uid = '-', tookMs }) => [
    name,
    ok ? colors.green('ok') : colors.red('not ok'),
    uid,
    `${tookMs} ms`,
    checks.flatMap((each) => (each.ok ? [] : [`${each.check}: ${each.detail ?? ''}`])).join('; '),
  ]);
  const text = table(['NAME', 'CHECK', 'UID', 'TOOK', 'PROBLEMS'], rows, 'No clusters.');
  const exit = clusters.every(({ ok }) => ok) ? 'ok' : 'trouble';
  return answer('clusters check', { clusters }, { text, names: clusters.map(({ name }) => name), exit });
}

/** @throws CliError `notFound` for a name that the fleet does not have */
export function chosen(entries: readonly FleetEntry[], names: readonly string[]): readonly FleetEntry[] {
  if (names.length === 0) return entries;
  return names.map((name) => {
    const entry = entries.find((one) => one.name === name || one.uid === name);
    if (entry === undefined)
      throw new CliError('notFound', `no cluster ${name} in the fleet; see: kbind-fleet clusters list`);
    return entry;
  });
}

async function remove_(
  session: Session,
  [name = '']: readonly string[],
  { finalizers, yes }: { readonly finalizers?: string; readonly yes: boolean },
) {
  const { cell, terminal, limit } = session;
  const [entry] = chosen(await cell.fleet.entries(), [name]);
  if (finalizers !== 'keep') {
    const { uid } = await cell.fleet.open(name, limit());
    const held = await withProgress(terminal, 'looking for finalizers', () =>
      cell.app.inspect(uid, { signal: limit() }, countOurs),
    );
    if (held.total > 0) {
      throw new CliError(
        'refused',
        `${name} still has objects with our finalizers: ${held.text}. Unbind first, or say --finalizers keep.`,
      );
    }
  }
  await confirm(terminal, `Take ${name} out of the fleet?`, yes);
  await cell.fleet.remove(entry?.name ?? name);
  return changed('clusters remove', name, 'removed');
}

async function pause({ cell }: Session, [name = '']: readonly string[]) {
  const [entry] = chosen(await cell.fleet.entries(), [name]);
  await cell.fleet.pause(entry?.name ?? name);
  return changed('clusters pause', name, 'paused');
}

/** Seconds after which a resumed cluster is swept (design.md, rule 14). */
const SWEEP_AFTER_SECONDS = 8;

async function resume({ cell, terminal }: Session, [name = '']: readonly string[]) {
  const [entry] = chosen(await cell.fleet.entries(), [name]);
  const owed = await cell.fleet.resume(entry?.name ?? name);
  if (owed !== undefined) {
    const id = `resumed/${owed.owedSince}`;
    const sweep = workMessage({ v: 1, type: 'sweep', cluster: owed.uid, id, retry: true }, SWEEP_AFTER_SECONDS);
    await cell.app.queues.send('work', [sweep.message]);
    note(terminal, `It is swept in ${SWEEP_AFTER_SECONDS} s.`);
  } else {
    note(terminal, 'If it was paused, the cell sweeps it within a minute.');
  }
  return changed('clusters resume', name, 'resumed');
}

type Change = 'clusters remove' | 'clusters pause' | 'clusters resume';

const changed = (command: Change, cluster: string, action: string) =>
  answer(command, { cluster, action }, { text: `${cluster} ${action}.`, names: [cluster] });
