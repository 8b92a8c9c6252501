import type { ErrorClass } from '../model/errors.ts';

/** What the process ends with; docs/cli.md is made of this table. */
export const exitCodes = {
  ok: [0, 'Done.'],
  failed: [1, 'It failed in a way that none of the others says.'],
  usage: [2, 'The command line is wrong.'],
  notFound: [3, 'A cluster, an object or a dead letter that was named does not exist.'],
  refused: [4, 'Refused, or not confirmed: nothing was changed.'],
  unavailable: [5, 'A cluster, the queues or the registry do not answer.'],
  trouble: [6, 'It was done, and what it found is not in order; or a part of it did not answer.'],
} as const satisfies Record<string, readonly [number, string]>;
export type Exit = keyof typeof exitCodes;

export const codeOf = (exit: Exit): number => exitCodes[exit][0];

/** An error whose message is meant for the person at the terminal. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exit: Exit;

  constructor(exit: Exit, message: string) {
    super(message);
    this.exit = exit;
  }
}

const byClass: Partial<Record<ErrorClass, Exit>> = {
  absent: 'notFound',
  conflict: 'refused',
  held: 'refused',
  forbidden: 'refused',
  invalid: 'refused',
  misconfigured: 'usage',
  credential: 'refused',
  unavailable: 'unavailable',
  unauthorized: 'unavailable',
  identity: 'unavailable',
  throttled: 'unavailable',
  aborted: 'unavailable',
};

/** The exit that one of our errors means. */
export const exitOf = (errorClass: ErrorClass): Exit => byClass[errorClass] ?? 'failed';
