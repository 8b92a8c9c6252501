import { isError, toKbindError } from '../model/errors.ts';
import type { Request } from '../model/request.ts';
import { parseMessage } from '../queue/codec.ts';
import {
  chainKey,
  parseDeadLetter,
  plainText,
  type ChainedRequest,
  type DeadLetter,
  type ErrorRecord,
} from '../queue/dead-letters.ts';
import type { DeadMessage } from './dead-queues.ts';

/** `crashed`: the queue's own redrive put it there, because no handler settled it: nobody wrote down an error. */
export type DeadClass = ErrorRecord['class'] | 'crashed';

export interface DeadError extends Omit<ErrorRecord, 'class'> {
  readonly class: DeadClass;
}

/** One dead message, as far as it can be read. */
export interface DeadEntry {
  readonly message: DeadMessage;
  /** How a letter was written: by settling, with its story, or by the queue's redrive, which knows the body only. */
  readonly origin: 'settled' | 'redriven';
  /** What can be replayed; absent for what nobody can read and for what nobody needs any more. */
  readonly request?: ChainedRequest | undefined;
  /** Why there is nothing to replay. */
  readonly unfit?: 'unreadable' | 'obsolete' | undefined;
  /** The one line that names the work. */
  readonly key: string;
  readonly error: DeadError;
  /** Epoch ms. */
  readonly firstFailure: number;
  readonly lastFailure: number;
  readonly attempts: number;
  readonly trace: readonly string[];
  readonly versions: Readonly<Record<string, string>>;
}

/** What is shown of a body that nobody can read, characters. */
const MAX_SHOWN = 120;

/** Reads a dead message. Never throws: what is unreadable is an entry as well. */
export function readEntry(message: DeadMessage): DeadEntry {
  try {
    return ofLetter(message, parseDeadLetter(message.body));
  } catch (error) {
    if (!isError(error, 'malformed')) throw error;
    return ofRawBody(message);
  }
}

function ofLetter(message: DeadMessage, letter: DeadLetter): DeadEntry {
  const { request, error, firstFailure, lastFailure, attempts, trace, versions } = letter;
  const common = { message, origin: 'settled', error, firstFailure, lastFailure, attempts, trace, versions } as const;
  if (request !== undefined) return { ...common, request, key: chainKey(request) };
  return { ...common, unfit: 'unreadable', key: `unreadable|${plainText(letter.body ?? '', MAX_SHOWN)}` };
}

function ofRawBody(message: DeadMessage): DeadEntry {
  const { sentAt } = message;
  const common = {
    message,
    origin: 'redriven',
    firstFailure: sentAt,
    lastFailure: sentAt,
    attempts: 0,
    trace: [],
    versions: {},
  } as const;
  const crashed: DeadError = { class: 'crashed', message: 'no handler settled it: it crashed, or ran out of time' };
  try {
    const request = parseMessage(message.body);
    const chained = chainedOf(request);
    if (chained !== undefined) return { ...common, request: chained, key: chainKey(chained), error: crashed };
    return { ...common, unfit: 'obsolete', key: `${rawCluster(request)}|${request.type}`, error: crashed };
  } catch (error) {
    const { errorClass, message: text } = toKbindError(error);
    const key = `unreadable|${plainText(message.body, MAX_SHOWN)}`;
    return { ...common, unfit: 'unreadable', key, error: { class: errorClass, message: text } };
  }
}

/** Heartbeats and refreshes are sent anew every minute: an old one is worth nothing. */
function chainedOf(request: Request): ChainedRequest | undefined {
  if (request.type === 'due') return request.request;
  return request.type === 'reconcile' || request.type === 'sweep' ? request : undefined;
}

const rawCluster = (request: Request): string => (request.type === 'due' ? request.request.cluster : request.cluster);

/** `<plural>.<group>` of an instance, else what was reconciled. */
export function apiOf({ request, key, unfit }: DeadEntry): string {
  if (request === undefined) return unfit === 'obsolete' ? (key.split('|')[1] ?? '') : 'unreadable';
  if (request.type === 'sweep') return 'sweep';
  return request.api ?? request.controller;
}

export const clusterOf = ({ request, key, unfit }: DeadEntry): string =>
  request?.cluster ?? (unfit === 'obsolete' ? (key.split('|')[0] ?? '') : '');
