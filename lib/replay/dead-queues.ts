/** The port to the two queues that hold dead letters. */
export const deadQueueNames = ['deadLetters', 'workDead'] as const;
export type DeadQueueName = (typeof deadQueueNames)[number];

/** A message that is out of its queue until it is removed, released, or its visibility timeout ends. */
export interface DeadMessage {
  readonly queue: DeadQueueName;
  /** The queue's own id: the same at every receive. */
  readonly id: string;
  /** What removes or releases it; another at every receive. */
  readonly receipt: string;
  readonly body: string;
  /** Epoch ms. */
  readonly sentAt: number;
}

export interface DeadQueues {
  /**
   * Up to ten messages, hidden from others for that long; empty when nothing more can be had. Of a FIFO group whose head is
   * out, nothing comes.
   * @throws KbindError class `unavailable`
   */
  receive(queue: DeadQueueName, visibilitySeconds: number): Promise<readonly DeadMessage[]>;
  /**
   * Takes messages out for good. Answers with those that the queue did not let go (a receipt that ran out): they are still
   * dead. Throws class `unavailable` when that is not known.
   */
  remove(messages: readonly DeadMessage[]): Promise<readonly DeadMessage[]>;
  /** Gives messages back at once. Those that it fails for come back by themselves when their time is up. */
  release(messages: readonly DeadMessage[]): Promise<void>;
  /** How many messages a queue holds, received ones included; approximate, as queues count. */
  count(queue: DeadQueueName): Promise<number>;
}
