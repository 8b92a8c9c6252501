import * as z from 'zod/mini';
import { controllers } from '../model/request.ts';
import { prospects } from '../replay/examine.ts';

/** What `-o json` prints, command by command: published as docs/cli-schema.json, and held by tests. */

const count = z.int().check(z.nonnegative());
/** Epoch ms. */
const moment = z.int();

const change = z.object({
  cluster: z.string(),
  uid: z.optional(z.string()),
  action: z.string(),
  note: z.optional(z.string()),
});

const clusters = z.object({
  fleet: z.string(),
  clusters: z.array(
    z.object({
      name: z.string(),
      uid: z.optional(z.string()),
      paused: z.boolean(),
      labels: z.optional(z.record(z.string(), z.string())),
      heardAt: z.optional(moment),
      problem: z.optional(z.string()),
    }),
  ),
});

const check = z.object({ check: z.string(), ok: z.boolean(), detail: z.optional(z.string()) });
const checked = z.object({
  clusters: z.array(
    z.object({ name: z.string(), uid: z.optional(z.string()), ok: z.boolean(), tookMs: count, checks: z.array(check) }),
  ),
});

const ratio = z.object({ total: count, ready: count });
const instances = z.object({
  total: count,
  synced: count,
  pending: count,
  conflicting: count,
  deleting: z.optional(count),
});
const status = z.object({
  cell: z.string(),
  /** Messages in each queue; absent where the queues do not answer. */
  queues: z.optional(z.record(z.string(), count)),
  clusters: z.array(
    z.object({
      name: z.string(),
      uid: z.optional(z.string()),
      paused: z.boolean(),
      /** The higher, the worse; 0 is in order. */
      trouble: count,
      /** Why there is nothing about it. */
      problem: z.optional(z.string()),
      connections: z.optional(ratio),
      bindings: z.optional(ratio),
      instances: z.optional(instances),
      /** What is not Ready, one line each. */
      notReady: z.optional(z.array(z.string())),
      forwarder: z.enum(['alive', 'silent', 'unknown']),
      lagSeconds: z.optional(count),
    }),
  ),
});

const step = z.object({ node: z.string(), answer: z.optional(z.string()) });
const difference = z.object({ path: z.string(), before: z.optional(z.string()), after: z.optional(z.string()) });
const deadLetter = z.object({
  id: z.string(),
  queue: z.enum(['deadLetters', 'workDead']),
  key: z.string(),
  error: z.string(),
  message: z.string(),
  attempts: count,
  firstFailure: moment,
  lastFailure: moment,
});
const shownLetter = z.extend(deadLetter, {
  origin: z.enum(['settled', 'redriven']),
  status: z.optional(z.int()),
  verb: z.optional(z.string()),
  object: z.optional(z.string()),
  side: z.optional(z.string()),
  trace: z.array(z.string()),
  versions: z.record(z.string(), z.string()),
});

const explained = z.object({
  cluster: z.string(),
  paused: z.boolean(),
  controller: z.enum(controllers),
  key: z.string(),
  prospect: z.enum(prospects),
  detail: z.string(),
  exists: z.optional(z.boolean()),
  trace: z.array(step),
  write: z.optional(
    z.object({
      verb: z.string(),
      side: z.enum(['consumer', 'provider']),
      api: z.string(),
      object: z.string(),
      diff: z.array(difference),
      refused: z.optional(z.string()),
    }),
  ),
  events: z.array(z.object({ type: z.string(), reason: z.string(), message: z.string(), count, last: z.string() })),
  deadLetter: z.optional(shownLetter),
  deadLetterNote: z.optional(z.string()),
});

export const differenceKinds = ['missing', 'drifted', 'stale-status', 'foreign', 'orphaned', 'other'] as const;
const compared = z.object({
  cluster: z.string(),
  api: z.string(),
  compared: count,
  inSync: count,
  /** False: the provider could not be read, or the order of its list cannot be relied on. */
  complete: z.boolean(),
  note: z.optional(z.string()),
  differences: z.array(z.object({ kind: z.enum(differenceKinds), key: z.string(), why: z.string() })),
});

const group = z.object({
  error: z.string(),
  status: z.optional(z.int()),
  cluster: z.string(),
  api: z.string(),
  entries: count,
  keys: count,
  oldest: moment,
  newest: moment,
  example: z.string(),
});
const deadList = z.object({
  groups: z.array(group),
  entries: z.optional(z.array(deadLetter)),
  total: count,
  /** Behind others of their key: not seen this time. */
  hidden: count,
});
const tried = z.object({
  entries: z.array(z.extend(deadLetter, { prospect: z.enum(prospects), detail: z.string() })),
  hidden: count,
});
const replayed = z.object({
  id: z.string(),
  matched: count,
  enqueued: count,
  notRemoved: count,
  unfit: count,
  stopped: z.optional(z.enum(['maximum', 'deadline', 'aborted'])),
});
const dropped = z.object({
  matched: count,
  dropped: count,
  kept: count,
  stopped: z.optional(z.enum(['maximum', 'deadline'])),
});

const enqueued = z.object({
  cluster: z.string(),
  enqueued: z.string(),
  outcome: z.optional(z.object({ prospect: z.enum(prospects), detail: z.string() })),
});

const exported = z.object({
  provider: z.string(),
  apis: z.array(z.object({ name: z.string(), scope: z.string(), versions: z.array(z.string()) })),
});
const bound = z.object({
  cluster: z.string(),
  dryRun: z.boolean(),
  objects: z.array(z.object({ kind: z.string(), name: z.string(), action: z.enum(['create', 'unchanged', 'update']) })),
});
const unbound = z.object({
  cluster: z.string(),
  binding: z.string(),
  apis: z.array(z.object({ api: z.string(), instances: count })),
  state: z.enum(['would delete', 'deleting', 'gone']),
});

export const results = {
  'clusters list': clusters,
  'clusters check': checked,
  'clusters add': change,
  'clusters remove': change,
  'clusters pause': change,
  'clusters resume': change,
  status,
  explain: explained,
  diff: compared,
  'dlq list': deadList,
  'dlq list --dry-run': tried,
  'dlq show': shownLetter,
  'dlq replay': replayed,
  'dlq drop': dropped,
  reconcile: enqueued,
  bind: bound,
  'bind --list': exported,
  unbind: unbound,
} as const;
export type ResultName = keyof typeof results;
export type ResultOf<Name extends ResultName> = z.infer<(typeof results)[Name]>;

/** The schema of every command's JSON, by command. */
export function jsonSchemas(): Record<string, unknown> {
  const entries = Object.entries(results).map(([name, schema]) => [name, z.toJSONSchema(schema, { io: 'output' })]);
  return Object.fromEntries(entries) as Record<string, unknown>;
}
