import { InvalidArgumentError, type Command } from 'commander';
import { KbindError } from '../model/errors.ts';
import { plainText } from '../queue/dead-letters.ts';
import type { Cell } from './cell.ts';
import { CliError, codeOf, exitOf, type Exit } from './exit-codes.ts';
import { parseDuration, print, type Answer, type Format } from './output.ts';
import type { ResultName, ResultOf } from './results.ts';
import type { Terminal } from './terminal.ts';

/** Options of every command. */
export interface GlobalOptions {
  readonly fleet?: string;
  readonly stage?: string;
  readonly region?: string;
  readonly profile?: string;
  readonly installation: string;
  readonly output: Format;
  readonly color: boolean;
  readonly quiet: boolean;
  readonly debug: boolean;
  /** Seconds that one cluster may take. */
  readonly timeout: number;
}

/** What a command works with. */
export interface Session {
  readonly terminal: Terminal;
  readonly options: GlobalOptions;
  readonly cell: Cell;
  /** Ends what one cluster is asked when its time is up. */
  readonly limit: () => AbortSignal;
}

export type Action<Options> = (session: Session, args: readonly string[], options: Options) => Promise<Answer>;

/** What stands around every command; main.ts makes one for the process, tests their own. */
export interface Host {
  readonly terminal: (options: GlobalOptions) => Terminal;
  readonly exit: (code: number) => void;
}

/** An answer whose data is what the published schema of that command says. */
export const answer = <Name extends ResultName>(
  _name: Name,
  data: ResultOf<Name>,
  {
    text,
    names = [],
    exit,
  }: { readonly text: string; readonly names?: readonly string[]; readonly exit?: Exit | undefined },
): Answer => ({ data, text, names, exit });

/** Runs a command's action in a session, prints its answer, and turns errors into one line and an exit code. */
export function runIn<Options>(host: Host, action: Action<Options>): (...args: unknown[]) => Promise<void> {
  return async (...all) => {
    const command = all.at(-1) as Command;
    const options = command.optsWithGlobals<GlobalOptions & Options>();
    const terminal = host.terminal(options);
    const args = command.processedArgs.flat().filter((arg) => arg !== undefined) as string[];
    let cell: Cell | undefined;
    try {
      // With it come the AWS SDK and the reconcilers: help, completion and a mistyped command do without.
      const { openCell } = await import('./cell.ts');
      cell = await openCell(options);
      const limit = (): AbortSignal => AbortSignal.timeout(options.timeout * 1000);
      const given = await action({ terminal, options, cell, limit }, args, options);
      print(terminal, options.output, given);
      host.exit(codeOf(given.exit ?? 'ok'));
    } catch (thrown) {
      host.exit(tellError(terminal, thrown, options.debug));
    } finally {
      await cell?.close();
    }
  };
}

const MAX_LINE = 1_000;

/** One line, without a stack unless it is asked for; answers with the exit code. */
export function tellError({ err, colors }: Terminal, thrown: unknown, debug: boolean): number {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  err.write(`${colors.red('error:')} ${plainText(error.message, MAX_LINE)}\n`);
  if (debug) err.write(`${error.stack ?? ''}\n${error.cause instanceof Error ? (error.cause.stack ?? '') : ''}\n`);
  if (error instanceof CliError) return codeOf(error.exit);
  return codeOf(error instanceof KbindError ? exitOf(error.errorClass) : 'failed');
}

/** An example of a command, shown in its help and run by a test. */
export interface Example {
  readonly args: string;
  readonly says: string;
  /** The exit in the test's fleet, if not 0. */
  readonly exit?: Exit | undefined;
}

const examples = new WeakMap<Command, readonly Example[]>();

export const examplesOf = (command: Command): readonly Example[] => examples.get(command) ?? [];

/** Adds examples to a command's help. */
export function withExamples(command: Command, ...given: readonly Example[]): Command {
  examples.set(command, given);
  const lines = given.map(({ args, says }) => `  # ${says}\n  kbind-fleet ${args}`);
  return command.addHelpText('after', `\nExamples:\n${lines.join('\n')}`);
}

/** `90s`, `15m`, `2h`, `7d` as seconds. */
export function duration(text: string): number {
  const seconds = parseDuration(text);
  if (seconds === undefined) throw new InvalidArgumentError('Say a duration like 90s, 15m, 2h or 7d.');
  return seconds;
}

/** A whole number from 1. */
export function positive(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1) throw new InvalidArgumentError('Say a whole number from 1.');
  return number;
}
