import type { SQSEvent, SQSRecord } from 'aws-lambda';
import { KbindError } from '../../../lib/model/errors.ts';
import type { QueueMessage, QueueName, Queues } from '../../../lib/queue/queues.ts';
import { passAwait, type Actor } from '../faults/network.ts';
import { queueFaults, type Faults } from '../faults/plan.ts';
import type { VirtualTime } from '../faults/virtual-time.ts';

/** One message in a queue. */
export interface Held {
  readonly id: string;
  readonly body: string;
  readonly group: string | undefined;
  readonly sentAt: number;
  visibleAt: number;
  receives: number;
  firstReceivedAt: number | undefined;
  inFlight: boolean;
}

const DEDUPLICATION_MS = 300_000;
const MAX_RECEIVES = 5;
const BATCH = 10;
const never = <T>(): Promise<T> => new Promise<T>(() => undefined);

/** A FIFO queue's memory of what it was sent: of a group, an id within five minutes is one message. */
class Deduplication {
  readonly #time: VirtualTime;
  readonly #seen = new Map<string, number>();

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  /** False for what was sent before. */
  take({ group, deduplicationId }: QueueMessage): boolean {
    if (group === undefined || deduplicationId === undefined) throw new Error('a FIFO message needs a group and an id');
    const now = this.#time.now();
    const id = `${group}|${deduplicationId}`;
    const seen = this.#seen.get(id);
    if (seen !== undefined && now - seen < DEDUPLICATION_MS) return false;
    this.#seen.set(id, now);
    return true;
  }
}

/** A queue with SQS's promises: order and one batch at a time per group, five minutes of deduplication, delays, redrive. */
export class VirtualQueue {
  readonly name: QueueName;
  readonly fifo: boolean;
  readonly #time: VirtualTime;
  readonly #visibilityMs: number;
  readonly #redrive: (held: Held) => void;
  readonly #deduplication: Deduplication;
  held: Held[] = [];
  #ids = 0;
  onMessage: () => void = () => undefined;

  constructor(
    name: QueueName,
    time: VirtualTime,
    options: { fifo: boolean; visibilityMs: number; redrive: (held: Held) => void },
  ) {
    this.name = name;
    this.fifo = options.fifo;
    this.#time = time;
    this.#visibilityMs = options.visibilityMs;
    this.#redrive = options.redrive;
    this.#deduplication = new Deduplication(time);
  }

  put(message: QueueMessage, lateMs = 0): void {
    const now = this.#time.now();
    if (this.fifo && !this.#deduplication.take(message)) return;
    this.#ids += 1;
    const delay = (message.delaySeconds ?? 0) * 1000 + lateMs;
    const held: Held = {
      id: `${this.name}-${this.#ids}`,
      body: message.body,
      group: message.group,
      sentAt: Math.floor(now),
      visibleAt: now + delay,
      receives: 0,
      firstReceivedAt: undefined,
      inFlight: false,
    };
    this.held.push(held);
    this.#time.after(delay, () => this.onMessage());
  }

  /** Messages that wait to be given out: SQS's ApproximateNumberOfMessages. */
  get waiting(): number {
    const now = this.#time.now();
    return this.held.filter(({ inFlight, visibleAt }) => !inFlight && visibleAt <= now).length;
  }

  /** What a poller gets now: up to ten, of each FIFO group from its head and only while none of it is out. */
  receive(shuffle: (held: Held[]) => Held[]): Held[] {
    const now = this.#time.now();
    const closed = new Set<string>();
    if (this.fifo) for (const each of this.held) if (each.inFlight && each.group !== undefined) closed.add(each.group);
    const candidates = this.fifo ? this.held : shuffle([...this.held]);
    const batch: Held[] = [];
    for (const each of candidates) {
      if (batch.length === BATCH) break;
      if (each.inFlight || (each.group !== undefined && closed.has(each.group))) continue;
      if (each.visibleAt > now) {
        if (this.fifo && each.group !== undefined) closed.add(each.group);
        continue;
      }
      batch.push(each);
    }
    return batch.filter((each) => this.#take(each, now));
  }

  #take(each: Held, now: number): boolean {
    each.receives += 1;
    if (each.receives > MAX_RECEIVES) {
      this.remove(each);
      this.#redrive(each);
      return false;
    }
    each.firstReceivedAt ??= Math.floor(now);
    each.inFlight = true;
    each.visibleAt = now + this.#visibilityMs;
    return true;
  }

  /** Its receiver is done with it, or is not heard of any more: then it comes back when its visibility ends. */
  giveBack(each: Held): void {
    const wait = Math.max(0, each.visibleAt - this.#time.now());
    this.#time.after(wait, () => {
      each.inFlight = false;
      this.onMessage();
    });
  }

  remove(each: Held): void {
    this.held = this.held.filter((other) => other !== each);
    if (this.fifo) this.onMessage();
  }
}

/** A fault that waits for the next messages that hold all these texts. */
export interface Aim {
  readonly texts: readonly string[];
  readonly fault: 'send-refused' | 'send-unanswered' | 'late' | 'duplicate';
  times: number;
}

/** The queues of a cell. */
export class VirtualQueues {
  readonly control: VirtualQueue;
  readonly instances: VirtualQueue;
  readonly work: VirtualQueue;
  /** Bodies of dead letters, each id once, and what crashed too often. */
  readonly dead: { readonly from: string; readonly body: string }[] = [];
  /** Hears of everything that is sent. */
  onSend: (body: string) => void = () => undefined;
  #aims: Aim[] = [];
  readonly #faults: Faults;
  readonly #deadIds: Deduplication;

  constructor(time: VirtualTime, faults: Faults) {
    this.#faults = faults;
    this.#deadIds = new Deduplication(time);
    const redrive = (from: string) => (held: Held) => void this.dead.push({ from, body: held.body });
    this.control = new VirtualQueue('control', time, {
      fifo: true,
      visibilityMs: 180_000,
      redrive: redrive('redrive'),
    });
    this.instances = new VirtualQueue('instances', time, {
      fifo: true,
      visibilityMs: 180_000,
      redrive: redrive('redrive'),
    });
    this.work = new VirtualQueue('work', time, { fifo: false, visibilityMs: 360_000, redrive: redrive('work-dead') });
  }

  /** The port as one process uses it. */
  portOf(actor: Actor): Queues {
    return {
      send: async (name, messages) => {
        if (!passAwait(actor)) return never();
        const refused = this.send(name, messages);
        await Promise.resolve();
        if (!passAwait(actor)) return never();
        if (refused.length > 0) throw new KbindError('unavailable', 'the queue did not take every message');
      },
      backlog: async () => {
        if (!passAwait(actor)) return never();
        await Promise.resolve();
        return passAwait(actor) ? this.instances.waiting : never();
      },
    };
  }

  /** Puts messages into a queue and answers with the positions of those that it says it did not take. */
  send(name: QueueName, messages: readonly QueueMessage[]): number[] {
    const fault = this.#aimed(messages) ?? this.#faults.draw(queueFaults);
    if (fault !== undefined && fault !== 'reordered') this.#faults.count(fault);
    const all = messages.map((_, position) => position);
    if (fault === 'send-refused') return all;
    const lost = fault === 'send-partial' ? all.filter(() => this.#faults.random.chance(0.5)) : [];
    for (const [position, message] of messages.entries()) {
      this.onSend(message.body);
      if (lost.includes(position)) continue;
      this.#put(name, message, fault);
    }
    return fault === 'send-unanswered' ? all : lost;
  }

  aim(aim: Aim): void {
    this.#aims.push(aim);
  }

  /** What still waits does so no more. */
  clearAims(): void {
    this.#aims = [];
  }

  #aimed(messages: readonly QueueMessage[]): Aim['fault'] | undefined {
    const aim = this.#aims.find(({ texts }) => messages.some(({ body }) => texts.every((text) => body.includes(text))));
    if (aim === undefined) return undefined;
    aim.times -= 1;
    this.#aims = this.#aims.filter(({ times }) => times > 0);
    return aim.fault;
  }

  #put(name: QueueName, message: QueueMessage, fault: string | undefined): void {
    if (name === 'deadLetters') {
      if (this.#deadIds.take(message)) this.dead.push({ from: 'settled', body: message.body });
      return;
    }
    const lateMs = fault === 'late' ? this.#faults.random.below(20_000) : 0;
    this[name].put(message, lateMs);
    if (fault === 'duplicate') this[name].put(message);
  }
}

/** The event by which a batch reaches a function. */
export function eventOf(batch: readonly Held[]): SQSEvent {
  return {
    Records: batch.map((held): SQSRecord => ({
      messageId: held.id,
      receiptHandle: held.id,
      body: held.body,
      attributes: {
        ApproximateReceiveCount: String(held.receives),
        SentTimestamp: String(held.sentAt),
        SenderId: 'campaign',
        ApproximateFirstReceiveTimestamp: String(held.firstReceivedAt ?? held.sentAt),
        ...(held.group === undefined ? {} : { MessageGroupId: held.group }),
      },
      messageAttributes: {},
      md5OfBody: '',
      eventSource: 'aws:sqs',
      eventSourceARN: 'arn:aws:sqs:eu-central-1:000000000000:queue',
      awsRegion: 'eu-central-1',
    })),
  };
}
