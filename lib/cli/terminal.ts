import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import type pc from 'picocolors';
import { CliError } from './exit-codes.ts';

/** The person's side of the program. */
export interface Terminal {
  readonly out: Writable;
  readonly err: Writable;
  readonly in: Readable;
  /** Somebody can be asked. */
  readonly interactive: boolean;
  /** Progress may overwrite itself. */
  readonly live: boolean;
  readonly quiet: boolean;
  readonly colors: ReturnType<typeof pc.createColors>;
}

/** A wait is told of once it has taken this long, ms. */
const TELL_AFTER_MS = 1_000;

/**
 * Asks whether to go on.
 * @throws CliError `refused` for any answer but yes, and where nobody can be asked
 */
export async function confirm(terminal: Terminal, question: string, yes: boolean): Promise<void> {
  if (yes) return;
  if (!terminal.interactive) throw new CliError('refused', `${question} Nobody can be asked here: say --yes to go on.`);
  const line = createInterface({ input: terminal.in, output: terminal.err });
  try {
    const answer = await line.question(`${question} [y/N] `);
    if (!/^y(es)?$/i.test(answer.trim())) throw new CliError('refused', 'Not confirmed: nothing was changed.');
  } finally {
    line.close();
  }
}

/** A line on standard error, unless it is to be quiet. */
export function note(terminal: Terminal, text: string): void {
  if (!terminal.quiet) terminal.err.write(`${text}\n`);
}

export interface Progress {
  /** What is going on now. */
  readonly tell: (text: string) => void;
}

/** Does something, and tells on standard error how far it is once it takes longer than a second. */
export async function withProgress<T>(
  terminal: Terminal,
  what: string,
  act: (progress: Progress) => Promise<T>,
): Promise<T> {
  let text = what;
  let shown = '';
  const show = (): void => {
    if (text === shown) return;
    shown = text;
    terminal.err.write(terminal.live ? `\r\u001B[K${text}` : `${text}\n`);
  };
  const timer = terminal.quiet ? undefined : setInterval(show, TELL_AFTER_MS);
  try {
    return await act({ tell: (now) => void (text = `${what}: ${now}`) });
  } finally {
    clearInterval(timer);
    if (shown !== '' && terminal.live) terminal.err.write('\r\u001B[K');
  }
}
