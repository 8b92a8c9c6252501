import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Option, type Command } from 'commander';
import { listed } from '../../app/replay-handler.ts';
import { systemClock } from '../../model/clock.ts';
import { controllers } from '../../model/request.ts';
import { dropDead } from '../../replay/drop.ts';
import type { DeadEntry } from '../../replay/entry.ts';
import { examineEntries, isSettled } from '../../replay/examine.ts';
import { isEmptyFilter, type DeadFilter } from '../../replay/filter.ts';
import { groupEntries } from '../../replay/groups.ts';
import { listDead, type Listing } from '../../replay/hold.ts';
import { replayDead } from '../../replay/replay.ts';
import { CliError } from '../exit-codes.ts';
import { answer, duration, positive, runIn, withExamples, type Host, type Session } from '../session.ts';
import { confirm, withProgress } from '../terminal.ts';
import { entriesText, groupsText, letterText } from './dlq-text.ts';
import { shownLetter } from './explain.ts';

interface FilterOptions {
  readonly cluster?: string;
  readonly controller?: DeadFilter['controller'];
  readonly api?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly error?: string;
  readonly olderThan?: number;
  readonly newerThan?: number;
  readonly id?: string[];
}

const MAX = 1000;
const PER_SECOND = 10;

export function addDlq(program: Command, host: Host): void {
  const dlq = program.command('dlq').description('Dead letters: work that was given up, and what to do about it.');
  withExamples(dlq, { args: 'dlq list', says: 'what there is, grouped' });
  addList(dlq, host);
  addShow(dlq, host);
  addReplay(dlq, host);
  addDrop(dlq, host);
}

function addList(dlq: Command, host: Host): void {
  const list = dlq
    .command('list')
    .description('Groups dead letters by error, cluster and API; or lists them, or says what a reconcile would do now.')
    .option('--entries', 'one line for each letter', false)
    .option('--dry-run', 'reconcile each key dry: is it still failing, healed, gone?', false)
    .action(runIn<FilterOptions & { entries: boolean; dryRun: boolean }>(host, listLetters));
  withExamples(
    filtered(list),
    { args: 'dlq list', says: 'what there is, grouped' },
    { args: 'dlq list --dry-run --cluster shop --error forbidden', says: 'which of them would still fail' },
  );
}

function addShow(dlq: Command, host: Host): void {
  const show = dlq
    .command('show')
    .description('Shows one dead letter with its error, its path through the flowchart and its history.')
    .argument('<id>', 'as dlq list --entries shows it, or its beginning')
    .action(runIn(host, showLetter));
  withExamples(show, { args: 'dlq show 0f3a9c1e', says: 'by the beginning of its id', exit: 'notFound' });
}

function addReplay(dlq: Command, host: Host): void {
  const replay = dlq
    .command('replay')
    .description('Puts dead letters back into their queues, the oldest first. May be interrupted and run again.')
    .option('--max <number>', 'the most that are replayed', positive, MAX)
    .option('--rate <number>', 'how many a second', positive, PER_SECOND)
    .option('--replay-id <id>', 'goes on with an interrupted replay (its id is told at the start)')
    .option('--dry-run', 'only say what a reconcile of each would do now', false)
    .option('--yes', 'do not ask', false)
    .action(runIn<ReplayOptions>(host, replayLetters));
  withExamples(
    filtered(replay),
    { args: 'dlq replay --cluster shop --api widgets.example.org --yes', says: 'one API of one cluster' },
    { args: 'dlq replay --dry-run --older-than 1h', says: 'what would happen' },
  );
}

function addDrop(dlq: Command, host: Host): void {
  const drop = dlq
    .command('drop')
    .description(
      'Takes dead letters out for good: those that are healed or gone, or (--all) whatever the filter means.',
    )
    .option('--all', 'also those that are still of use; needs a filter', false)
    .option('--max <number>', 'the most that are dropped', positive, MAX)
    .option('--yes', 'do not ask', false)
    .action(runIn<FilterOptions & { all: boolean; max: number; yes: boolean }>(host, dropLetters));
  withExamples(
    filtered(drop),
    { args: 'dlq drop --yes', says: 'what has healed meanwhile' },
    { args: 'dlq drop --all --older-than 7d --yes', says: 'whatever is older than a week' },
  );
}

function filtered(command: Command): Command {
  return command
    .option('--cluster <name>', 'of this cluster (name or UID)')
    .addOption(new Option('--controller <controller>', 'of this controller').choices([...controllers, 'sweep']))
    .option('--api <api>', 'of this <plural>.<group>')
    .option('--namespace <namespace>', 'of objects in this namespace')
    .option('--name <pattern>', 'of objects with this name; * stands for any text')
    .option('--error <text>', 'with this error class, or a part of the message')
    .option('--older-than <age>', 'whose last failure is at least that long ago: 90s, 15m, 2h, 7d', duration)
    .option('--newer-than <age>', 'whose last failure is at most that long ago', duration)
    .option('--id <id...>', 'with these ids, or their beginnings');
}

/** A cluster that does not answer can still be named by its UID. */
async function filterOf({ cell, limit }: Session, options: FilterOptions): Promise<DeadFilter> {
  const { cluster, controller, api, namespace, name, error, olderThan, newerThan, id } = options;
  const entry = cluster === undefined ? undefined : (await cell.fleet.entries()).find((one) => one.name === cluster);
  const uid = entry === undefined ? cluster : (entry.uid ?? (await cell.fleet.open(entry.name, limit())).uid);
  const ages = { olderThanSeconds: olderThan, newerThanSeconds: newerThan };
  return { cluster: uid, controller, api, namespace, name, error, ...ages, ids: id };
}

async function read(session: Session, filter: DeadFilter): Promise<Listing> {
  return withProgress(session.terminal, 'reading dead letters', ({ tell }) =>
    listDead(session.cell.app.deadQueues, filter, { nowMs: Date.now(), onProgress: (count) => tell(String(count)) }),
  );
}

async function listLetters(
  session: Session,
  _: readonly string[],
  options: FilterOptions & { readonly entries: boolean; readonly dryRun: boolean },
) {
  const listing = await read(session, await filterOf(session, options));
  if (options.dryRun) return tryEntries(session, listing.entries, listing.hidden);
  const { entries, hidden } = listing;
  const groups = groupEntries(entries);
  const shown = entries.map(shownEntry);
  const data = { groups, ...(options.entries ? { entries: shown } : {}), total: entries.length, hidden };
  const now = Date.now();
  const text = options.entries ? entriesText(shown, now) : groupsText(groups, now);
  return answer('dlq list', data, { text: text + hiddenText(hidden), names: entries.map(({ message }) => message.id) });
}

const shownEntry = (entry: DeadEntry) => ({ ...listed(entry), queue: entry.message.queue });

const hiddenText = (hidden: number): string =>
  hidden === 0 ? '' : `\n${hidden} more are behind others of their key: they show when those are gone.`;

async function tryEntries(session: Session, entries: readonly DeadEntry[], hidden: number) {
  const { cell, terminal, limit } = session;
  const examined = await withProgress(terminal, 'reconciling dry', ({ tell }) =>
    examineEntries(
      entries,
      (request) => cell.app.examine(request, { signal: limit() }),
      (count) => tell(`${count} of ${entries.length}`),
    ),
  );
  const shown = examined.map(({ entry, finding }) => ({ ...shownEntry(entry), ...finding }));
  const names = entries.map(({ message }) => message.id);
  const text = entriesText(shown, Date.now()) + hiddenText(hidden);
  return answer('dlq list --dry-run', { entries: shown, hidden }, { text, names });
}

async function showLetter(session: Session, [id = '']: readonly string[]) {
  const { entries } = await read(session, { ids: [id] });
  const [entry, another] = entries;
  if (entry === undefined) throw new CliError('notFound', `no dead letter ${id}; see: kbind-fleet dlq list --entries`);
  if (another !== undefined)
    throw new CliError('usage', `${id} is the beginning of ${entries.length} ids: say more of it`);
  const data = shownLetter(entry);
  return answer('dlq show', data, { text: letterText(data).join('\n'), names: [entry.message.id] });
}

interface ReplayOptions extends FilterOptions {
  readonly max: number;
  readonly rate: number;
  readonly replayId?: string;
  readonly dryRun: boolean;
  readonly yes: boolean;
}

async function replayLetters(session: Session, _: readonly string[], options: ReplayOptions) {
  const { cell, terminal } = session;
  const filter = await filterOf(session, options);
  const listing = await read(session, filter);
  if (options.dryRun) return tryEntries(session, listing.entries.slice(0, options.max), listing.hidden);
  const id = options.replayId ?? randomUUID();
  const most = Math.min(listing.entries.length, options.max);
  const question = `Replay ${most} of ${listing.seen + listing.hidden} dead letters, ${options.rate} a second?`;
  if (most > 0) await confirm(terminal, question, options.yes);
  const stop = new AbortController();
  const interrupted = (): void => stop.abort();
  process.once('SIGINT', interrupted);
  const parts = {
    dead: cell.app.deadQueues,
    queues: cell.app.queues,
    clock: systemClock,
    pause: (ms: number) => delay(ms),
  };
  const report = await withProgress(terminal, `replay ${id}`, ({ tell }) =>
    replayDead(parts, {
      id,
      filter,
      max: options.max,
      perSecond: options.rate,
      signal: stop.signal,
      onProgress: ({ enqueued }) => tell(`${enqueued} of ${most}`),
    }),
  ).finally(() => process.removeListener('SIGINT', interrupted));
  const { matched, enqueued, notRemoved, unfit, stopped } = report;
  const text = [
    `Replayed ${enqueued} of ${matched} dead letters.`,
    ...(notRemoved === 0
      ? []
      : [`${notRemoved} were enqueued and are still listed: replaying them again does no harm.`]),
    ...(unfit === 0 ? [] : [`${unfit} cannot be replayed: nobody can read them, or nobody needs them any more.`]),
    ...(stopped === undefined ? [] : [`Stopped: ${stopped}. Go on with --replay-id ${id}.`]),
  ].join('\n');
  return answer('dlq replay', report, { text, names: [id], exit: stopped === 'aborted' ? 'trouble' : 'ok' });
}

async function dropLetters(
  session: Session,
  _: readonly string[],
  { all, max, yes, ...options }: FilterOptions & { readonly all: boolean; readonly max: number; readonly yes: boolean },
) {
  const { cell, terminal, limit } = session;
  const filter = await filterOf(session, options);
  if (all && isEmptyFilter(filter))
    throw new CliError('usage', '--all needs a filter: it would drop every dead letter');
  const examine = (request: Parameters<typeof cell.app.examine>[0]) => cell.app.examine(request, { signal: limit() });
  const { entries } = await read(session, filter);
  const most = all
    ? entries.length
    : (await examineEntries(entries, examine)).filter((one) => isSettled(one.finding)).length;
  const what = all ? 'whatever they are about' : 'healed or gone';
  if (most > 0) await confirm(terminal, `Drop ${Math.min(most, max)} dead letters, ${what}, for good?`, yes);
  const report = await withProgress(terminal, 'dropping', ({ tell }) =>
    dropDead(cell.app.deadQueues, examine, {
      filter,
      settledOnly: !all,
      max,
      nowMs: () => Date.now(),
      onProgress: ({ dropped }) => tell(String(dropped)),
    }),
  );
  return answer('dlq drop', report, { text: `Dropped ${report.dropped} dead letters, kept ${report.kept}.` });
}
