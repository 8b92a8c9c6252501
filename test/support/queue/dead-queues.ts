import type { DeadMessage, DeadQueueName, DeadQueues } from '../../../lib/replay/dead-queues.ts';
import type { QueueMessage, QueueName, Queues } from '../../../lib/queue/queues.ts';

interface Held extends DeadMessage {
  readonly group: string;
  hiddenUntil: number;
}

/** Queues that live in memory, with a clock of their own; every call is an await that a test may never come back from. */
export class MemoryCell implements DeadQueues, Queues {
  now = 1_000_000;
  readonly sent: { readonly queue: QueueName; readonly message: QueueMessage }[] = [];
  dead: Held[] = [];
  /** The await that is never left, counted from 1; 0: none. */
  dieAt = 0;
  awaits = 0;
  #receipts = 0;

  bury(queue: DeadQueueName, body: string, group = `g${this.dead.length}`): string {
    const id = `m${this.dead.length}-${queue}`;
    this.dead.push({ queue, id, receipt: '', body, sentAt: this.now, group, hiddenUntil: 0 });
    return id;
  }

  /** An await before, and one after, what a call does. */
  async #call<T>(act: () => T): Promise<T> {
    await this.#await();
    const result = act();
    await this.#await();
    return result;
  }

  async #await(): Promise<void> {
    this.awaits += 1;
    if (this.awaits === this.dieAt) await new Promise<void>(() => undefined);
    await Promise.resolve();
  }

  receive(queue: DeadQueueName, visibilitySeconds: number): Promise<readonly DeadMessage[]> {
    return this.#call(() => {
      const closed = new Set<string>();
      const batch: Held[] = [];
      for (const held of this.dead.filter((each) => each.queue === queue)) {
        // One message of a group at a time, and only while nothing before it is out.
        if (!closed.has(held.group) && held.hiddenUntil <= this.now && batch.length < 10) batch.push(held);
        closed.add(held.group);
      }
      return batch.map((held) => {
        held.hiddenUntil = this.now + visibilitySeconds * 1000;
        this.#receipts += 1;
        Object.assign(held, { receipt: `r${this.#receipts}` });
        return { ...held };
      });
    });
  }

  remove(messages: readonly DeadMessage[]): Promise<readonly DeadMessage[]> {
    return this.#call(() => {
      const left = messages.filter(({ receipt }) => !this.dead.some((held) => held.receipt === receipt));
      this.dead = this.dead.filter((held) => !messages.some(({ receipt }) => receipt === held.receipt));
      return left;
    });
  }

  release(messages: readonly DeadMessage[]): Promise<void> {
    return this.#call(() => {
      for (const held of this.dead) if (messages.some(({ receipt }) => receipt === held.receipt)) held.hiddenUntil = 0;
    });
  }

  count(queue: DeadQueueName): Promise<number> {
    return this.#call(() => this.dead.filter((held) => held.queue === queue).length);
  }

  backlog(): Promise<number> {
    return this.#call(() => this.sent.filter(({ queue }) => queue === 'instances').length);
  }

  send(queue: QueueName, messages: readonly QueueMessage[]): Promise<void> {
    return this.#call(() => {
      for (const message of messages) {
        const known = this.sent.some(
          (each) => message.deduplicationId !== undefined && each.message.deduplicationId === message.deduplicationId,
        );
        if (!known) this.sent.push({ queue, message });
      }
    });
  }
}

/** Lets everything run that can. */
export async function settleAwaits(): Promise<void> {
  for (let turn = 0; turn < 500; turn += 1) await Promise.resolve();
}
