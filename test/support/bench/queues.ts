import { randomUUID } from 'node:crypto';
import type { SQSEvent, SQSRecord } from 'aws-lambda';
import type { QueueMessage, QueueName } from '../../../lib/queue/queues.ts';

/** How often something happened at one queue. */
export interface QueueCounts {
  sent: number;
  /** Sent, and swallowed because the id was there within five minutes. */
  deduplicated: number;
  delivered: number;
  invocations: number;
}

export interface HeldMessage {
  readonly id: string;
  readonly message: QueueMessage;
  readonly sentAt: number;
  receives: number;
}

interface Group {
  readonly waiting: HeldMessage[];
  busy: boolean;
}

export const FLOWING = ['control', 'instances', 'work'] as const;
export type FlowQueue = (typeof FLOWING)[number];

const DEDUPLICATION_MS = 300_000;
const BATCH = 10;

/** SQS on the machine's clock and without its network: order and one batch at a time per group, deduplication, delays. */
export class BenchQueue {
  readonly counts: QueueCounts = { sent: 0, deduplicated: 0, delivered: 0, invocations: 0 };
  readonly #fifo: boolean;
  readonly #groups = new Map<string, Group>();
  /** Groups with something to give out, in the order in which that came in. A standard queue has a group per message. */
  readonly #ready = new Set<Group>();
  readonly #seen = new Map<string, number>();
  readonly #timers = new Set<NodeJS.Timeout>();
  inFlight = 0;
  onMessage: () => void = () => undefined;

  constructor(name: FlowQueue) {
    this.#fifo = name !== 'work';
  }

  get ready(): number {
    return this.#ready.size;
  }

  /** Messages that wait to be given out: SQS's ApproximateNumberOfMessages. */
  get waiting(): number {
    let sum = 0;
    for (const group of this.#groups.values()) sum += group.waiting.length;
    return sum;
  }

  get delayed(): number {
    return this.#timers.size;
  }

  send(message: QueueMessage): void {
    this.counts.sent += 1;
    const { group, deduplicationId, delaySeconds = 0 } = message;
    if (this.#fifo) {
      if (group === undefined || deduplicationId === undefined)
        throw new Error('a FIFO message needs a group and an id');
      const id = `${group}|${deduplicationId}`;
      const before = this.#seen.get(id);
      if (before !== undefined && Date.now() - before < DEDUPLICATION_MS) {
        this.counts.deduplicated += 1;
        return;
      }
      this.#seen.set(id, Date.now());
    }
    const held = { id: randomUUID(), message, sentAt: Date.now(), receives: 0 };
    if (delaySeconds === 0) return this.#put(held);
    this.#later(held, delaySeconds * 1000);
  }

  /** A batch for one invocation; undefined when nothing can be given out. */
  receive(): { readonly batch: readonly HeldMessage[]; readonly groups: readonly Group[] } | undefined {
    const batch: HeldMessage[] = [];
    const groups: Group[] = [];
    for (const group of this.#ready) {
      this.#ready.delete(group);
      group.busy = true;
      groups.push(group);
      batch.push(...group.waiting.splice(0, BATCH - batch.length));
      if (batch.length === BATCH) break;
    }
    if (batch.length === 0) return undefined;
    for (const held of batch) held.receives += 1;
    this.counts.delivered += batch.length;
    this.counts.invocations += 1;
    this.inFlight += batch.length;
    return { batch, groups };
  }

  /** Ends a delivery; what failed comes back. */
  settle(
    { batch, groups }: NonNullable<ReturnType<BenchQueue['receive']>>,
    failed: ReadonlySet<string>,
    visibilityMs: number,
  ): void {
    this.inFlight -= batch.length;
    for (const held of batch) if (failed.has(held.id)) this.#later(held, visibilityMs);
    for (const group of groups) {
      group.busy = false;
      if (group.waiting.length > 0) this.#ready.add(group);
    }
    this.onMessage();
  }

  /** Forgets what waits, delays included. */
  clear(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#ready.clear();
    this.#groups.clear();
  }

  #later(held: HeldMessage, ms: number): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#put(held);
    }, ms);
    this.#timers.add(timer);
  }

  #put(held: HeldMessage): void {
    const name = held.message.group ?? held.id;
    const known = this.#fifo ? this.#groups.get(name) : undefined;
    const group = known ?? { waiting: [], busy: false };
    if (this.#fifo && known === undefined) this.#groups.set(name, group);
    group.waiting.push(held);
    if (!group.busy) this.#ready.add(group);
    this.onMessage();
  }
}

/** The event by which a batch reaches a function. */
export function batchEvent(batch: readonly HeldMessage[]): SQSEvent {
  return { Records: batch.map(recordOf) };
}

function recordOf({ id, message, sentAt, receives }: HeldMessage): SQSRecord {
  return {
    messageId: id,
    receiptHandle: id,
    body: message.body,
    attributes: {
      ApproximateReceiveCount: String(receives),
      SentTimestamp: String(sentAt),
      SenderId: 'bench',
      ApproximateFirstReceiveTimestamp: String(Date.now()),
      ...(message.group === undefined ? {} : { MessageGroupId: message.group }),
    },
    messageAttributes: {},
    md5OfBody: '',
    eventSource: 'aws:sqs',
    eventSourceARN: 'arn:aws:sqs:eu-central-1:000000000000:queue',
    awsRegion: 'eu-central-1',
  };
}

export type { QueueName };
