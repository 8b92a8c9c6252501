import type { Command } from 'commander';
import type { Explanation } from '../../app/explain.ts';
import type { ReconcileRequest } from '../../model/request.ts';
import type { DeadEntry } from '../../replay/entry.ts';
import { listDead } from '../../replay/hold.ts';
import { toKbindError } from '../../model/errors.ts';
import { listed } from '../../app/replay-handler.ts';
import { KEY_HELP, keyRequest } from '../keys.ts';
import type { ResultOf } from '../results.ts';
import { answer, runIn, withExamples, type Host, type Session } from '../session.ts';
import { withProgress, type Terminal } from '../terminal.ts';
import { letterText } from './dlq-text.ts';

export function addExplain(program: Command, host: Host): void {
  const command = program
    .command('explain')
    .description(
      'Why is it like this, and what now? Runs a reconcile of one object dry: the path through the flowchart with the ' +
        `answer at every node, the first write that it would make, its last dead letter and Events. ${KEY_HELP}`,
    )
    .argument('<cluster>', 'name or UID')
    .argument('<api>', 'what kind of object')
    .argument('<name>', '[NAMESPACE/]NAME')
    .option('--no-dead-letters', 'do not look into the dead letters (takes a second)')
    .action(runIn<{ deadLetters: boolean }>(host, explainOne));
  withExamples(
    command,
    { args: 'explain shop widgets.example.org default/blue', says: 'an instance' },
    { args: 'explain shop connection demo -o json', says: 'a Connection, for a program' },
  );
}

async function explainOne(
  session: Session,
  [name = '', api = '', object = '']: readonly string[],
  { deadLetters }: { readonly deadLetters: boolean },
) {
  const { cell, terminal, limit } = session;
  const request0 = keyRequest('unknown', api, object);
  const cluster = await cell.fleet.open(name, limit());
  const request: ReconcileRequest = { ...request0, cluster: cluster.uid };
  const explanation = await withProgress(terminal, 'reconciling dry', () =>
    cell.app.explain(request, { signal: limit() }),
  );
  const last = deadLetters ? await lastDeadLetter(session, request) : {};
  const { finding, key, exists, trace, write, events } = explanation;
  const data: ResultOf<'explain'> = {
    cluster: cluster.name,
    paused: cluster.paused,
    controller: request.controller,
    key,
    ...finding,
    ...(exists === undefined ? {} : { exists }),
    trace: [...trace],
    ...(write === undefined ? {} : { write: { ...write, diff: [...write.diff] } }),
    events: [...events],
    ...last,
  };
  return answer('explain', data, { text: textOf(terminal, data, explanation), names: [finding.prospect] });
}

async function lastDeadLetter(
  { cell, terminal }: Session,
  { cluster, controller, api, namespace, name }: ReconcileRequest,
): Promise<Pick<ResultOf<'explain'>, 'deadLetter' | 'deadLetterNote'>> {
  const filter = { cluster, controller, api, namespace, name: name.includes('*') ? undefined : name };
  try {
    const { entries } = await withProgress(terminal, 'reading dead letters', () =>
      listDead(cell.app.deadQueues, filter, { nowMs: Date.now() }),
    );
    const last = entries.toSorted((a, b) => b.lastFailure - a.lastFailure)[0];
    return last === undefined ? {} : { deadLetter: shownLetter(last) };
  } catch (error) {
    return { deadLetterNote: toKbindError(error).message };
  }
}

/** A dead letter with all that is known of it. */
export function shownLetter(entry: DeadEntry): ResultOf<'dlq show'> {
  const { origin, trace, versions, message } = entry;
  const { status, verb, object, side } = entry.error;
  return {
    ...listed(entry),
    queue: message.queue,
    origin,
    ...(status === undefined ? {} : { status }),
    ...(verb === undefined ? {} : { verb }),
    ...(object === undefined ? {} : { object }),
    ...(side === undefined ? {} : { side }),
    trace: [...trace],
    versions: { ...versions },
  };
}

function textOf({ colors }: Terminal, data: ResultOf<'explain'>, { trace }: Explanation): string {
  const title = (text: string): string => colors.bold(text);
  const steps = trace.map(({ node, answer }) => `  ${node}${answer === undefined ? '' : ` → ${colors.cyan(answer)}`}`);
  return [
    `${title('Now:')} ${data.prospect}: ${data.detail}`,
    ...(data.paused ? ['The cluster is paused: nothing of this happens.'] : []),
    ...(data.exists === false ? ['The object does not exist in the consumer.'] : []),
    title('Path:'),
    ...(steps.length === 0 ? ['  (nothing was reached)'] : steps),
    ...(data.write === undefined ? [] : writeText(data.write, colors)),
    ...section(
      title('Events:'),
      data.events.map(({ type, reason, message, count }) => `  ${type} ${reason} (×${count}): ${message}`),
    ),
    ...section(title('Last dead letter:'), data.deadLetter === undefined ? [] : letterText(data.deadLetter)),
    ...(data.deadLetterNote === undefined ? [] : [`Dead letters were not read: ${data.deadLetterNote}`]),
  ].join('\n');
}

const section = (heading: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : [heading, ...lines];

function writeText(
  { verb, side, api, object, diff, refused }: NonNullable<ResultOf<'explain'>['write']>,
  colors: Terminal['colors'],
): string[] {
  const lines = diff.flatMap(({ path, before, after }) => [
    ...(before === undefined ? [] : [colors.red(`  - ${path}: ${before}`)]),
    ...(after === undefined ? [] : [colors.green(`  + ${path}: ${after}`)]),
  ]);
  return [
    colors.bold(`First write: ${verb} ${api} ${object} on the ${side}`),
    ...lines,
    ...(refused === undefined ? [] : [`  the server would refuse it: ${refused}`]),
  ];
}
