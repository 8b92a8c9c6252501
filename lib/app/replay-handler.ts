import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import * as z from 'zod/mini';
import { KbindError } from '../model/errors.ts';
import { controllers } from '../model/request.ts';
import { describeIssues } from '../queue/codec.ts';
import type { DeadQueues } from '../replay/dead-queues.ts';
import { dropDead, type DropReport } from '../replay/drop.ts';
import { examineEntries, type Prospect } from '../replay/examine.ts';
import { isEmptyFilter } from '../replay/filter.ts';
import { groupEntries, type DeadGroup } from '../replay/groups.ts';
import { listDead } from '../replay/hold.ts';
import { replayDead, type ReplayReport } from '../replay/replay.ts';
import type { DeadEntry } from '../replay/entry.ts';
import type { Engine } from './engine.ts';
import { examine } from './explain.ts';

/** Dead letters as a function: invoked directly, with what is to be done as its event. */

const text = z.string().check(z.minLength(1), z.maxLength(512));
const age = z.int().check(z.nonnegative());

const filterSchema = z.strictObject({
  cluster: z.optional(text),
  controller: z.optional(z.enum([...controllers, 'sweep'])),
  api: z.optional(text),
  namespace: z.optional(text),
  name: z.optional(text),
  error: z.optional(text),
  olderThanSeconds: z.optional(age),
  newerThanSeconds: z.optional(age),
  ids: z.optional(z.array(text).check(z.minLength(1), z.maxLength(1000))),
});

const filter = z._default(filterSchema, {});
const max = z._default(z.int().check(z.positive(), z.lte(10_000)), 1000);
const perSecond = z._default(z.int().check(z.positive(), z.lte(1000)), 10);

const eventSchema = z.discriminatedUnion('action', [
  z.strictObject({ action: z.literal('list'), filter }),
  z.strictObject({ action: z.literal('dry-run'), filter, max }),
  z.strictObject({
    action: z.literal('replay'),
    filter,
    max,
    perSecond,
    /** Of an interrupted replay that goes on. */
    id: z.optional(z.string().check(z.regex(/^[\w-]{1,64}$/))),
  }),
  z.strictObject({ action: z.literal('drop'), filter, max, settledOnly: z._default(z.boolean(), true) }),
]);

export type ReplayEvent = z.input<typeof eventSchema>;
type Parsed = z.output<typeof eventSchema>;

/** One entry of a list, without its trace: what a terminal and a function's answer can hold. */
export interface ListedEntry {
  readonly id: string;
  readonly queue: string;
  readonly key: string;
  readonly error: string;
  readonly message: string;
  readonly attempts: number;
  /** Epoch ms. */
  readonly firstFailure: number;
  readonly lastFailure: number;
}

export interface ListAnswer {
  readonly action: 'list';
  readonly groups: readonly DeadGroup[];
  readonly entries: number;
  /** Not seen: behind others of their key, or beyond what one look holds. */
  readonly hidden: number;
}

export interface DryRunAnswer {
  readonly action: 'dry-run';
  readonly entries: readonly (ListedEntry & { readonly prospect: Prospect; readonly detail: string })[];
  readonly hidden: number;
}

export type ReplayAnswer =
  | ListAnswer
  | DryRunAnswer
  | ({ readonly action: 'replay' } & ReplayReport)
  | ({ readonly action: 'drop' } & DropReport);

/** Throws class `misconfigured` for an event that it does not understand, `unavailable` when a queue does not answer. */
export type ReplayHandler = (event: unknown, context: { getRemainingTimeInMillis(): number }) => Promise<ReplayAnswer>;

/** What is left of the time for giving back what is held, ms. */
const RESERVE_MS = 15_000;

/** @throws KbindError class `misconfigured` that names what is wrong with the event */
function parseEvent(event: unknown): Parsed {
  const parsed = eventSchema.safeParse(event);
  if (!parsed.success) throw new KbindError('misconfigured', `event: ${describeIssues(parsed.error)}`);
  if (parsed.data.action === 'drop' && !parsed.data.settledOnly && isEmptyFilter(parsed.data.filter)) {
    throw new KbindError('misconfigured', 'event: a drop of more than what is settled needs a filter');
  }
  return parsed.data;
}

export function createReplayHandler(engine: Engine, dead: DeadQueues): ReplayHandler {
  return async (event, context) => {
    const asked = parseEvent(event);
    const remainingMs = Math.max(0, context.getRemainingTimeInMillis() - RESERVE_MS);
    const deadline = engine.clock.now() + remainingMs;
    const answer = await act(engine, dead, asked, { deadline, signal: AbortSignal.timeout(Math.ceil(remainingMs)) });
    const { entries: _, groups: __, ...counts } = { entries: [], groups: [], ...answer };
    engine.log.info('dead letters handled', { ...counts });
    return answer;
  };
}

interface Time {
  readonly deadline: number;
  readonly signal: AbortSignal;
}

async function act(engine: Engine, dead: DeadQueues, asked: Parsed, time: Time): Promise<ReplayAnswer> {
  const { clock, queues } = engine;
  switch (asked.action) {
    case 'list': {
      const { entries, hidden } = await listDead(dead, asked.filter, { nowMs: clock.now() });
      return { action: 'list', groups: groupEntries(entries), entries: entries.length, hidden };
    }
    case 'dry-run':
      return dryRun(engine, dead, asked, time);
    case 'replay': {
      const { id = randomUUID(), filter, max, perSecond } = asked;
      const parts = { dead, queues, clock, pause: (ms: number) => delay(ms) };
      const report = await replayDead(parts, { id, filter, max, perSecond, deadline: time.deadline });
      return { action: 'replay', ...report };
    }
    case 'drop': {
      const { filter, max, settledOnly } = asked;
      const options = { filter, max, settledOnly, nowMs: () => clock.now(), deadline: time.deadline };
      return { action: 'drop', ...(await dropDead(dead, (request) => examine(engine, request, time), options)) };
    }
    default:
      throw new KbindError('internal', 'no such action');
  }
}

async function dryRun(
  engine: Engine,
  dead: DeadQueues,
  { filter, max }: Parsed & { readonly action: 'dry-run' },
  time: Time,
): Promise<DryRunAnswer> {
  const { entries, hidden } = await listDead(dead, filter, { nowMs: engine.clock.now() });
  const examined = await examineEntries(entries.slice(0, max), (request) => examine(engine, request, time));
  return {
    action: 'dry-run',
    entries: examined.map(({ entry, finding }) => ({ ...listed(entry), ...finding })),
    hidden: hidden + Math.max(0, entries.length - max),
  };
}

/** An entry without its trace. */
export function listed({ message, key, error, attempts, firstFailure, lastFailure }: DeadEntry): ListedEntry {
  const { id, queue } = message;
  return { id, queue, key, error: error.class, message: error.message, attempts, firstFailure, lastFailure };
}
