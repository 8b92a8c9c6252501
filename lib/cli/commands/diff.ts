import type { Command } from 'commander';
import { compareSides } from '../../app/compare.ts';
import { table } from '../output.ts';
import { answer, runIn, withExamples, type Host, type Session } from '../session.ts';
import { withProgress } from '../terminal.ts';

/** Both sides of a large API are many pages: so many times what one request may take. */
const PATIENCE = 60;

export function addDiff(program: Command, host: Host): void {
  const command = program
    .command('diff')
    .description(
      'Compares both sides of an API as the ten-minute backstop does, and reports: missing, drifted, stale-status, foreign, orphaned copies. Changes nothing. Ends with 6 when there are differences.',
    )
    .argument('<cluster>', 'name or UID')
    .argument('<api>', '<plural>.<group>')
    .action(runIn(host, diff));
  withExamples(command, { args: 'diff shop widgets.example.org', says: 'what is not in sync' });
}

async function diff(session: Session, [name = '', api = '']: readonly string[]) {
  const { cell, terminal, options, limit } = session;
  const { uid, name: cluster } = await cell.fleet.open(name, limit());
  const signal = AbortSignal.timeout(options.timeout * 1000 * PATIENCE);
  const found = await withProgress(terminal, 'comparing', () =>
    cell.app.inspect(uid, { signal }, (world) => compareSides(world, api)),
  );
  const { compared, inSync, complete, note, differences } = found;
  const data = {
    cluster,
    api,
    compared,
    inSync,
    complete,
    ...(note === undefined ? {} : { note }),
    differences: [...differences],
  };
  const rows = differences.map(({ kind, key, why }) => [kind, key, why]);
  const text = [
    table(['KIND', 'KEY', 'WHY'], rows, 'No differences.'),
    `${compared} compared, ${inSync} in sync, ${differences.length} different.`,
    ...(note === undefined ? [] : [`Only the consumer's side was seen: ${note}`]),
  ].join('\n');
  const exit = differences.length === 0 && complete ? 'ok' : 'trouble';
  return answer('diff', data, { text, names: differences.map(({ key }) => key), exit });
}
