import type { ForwarderMessage, Outgoing, Sink } from '../../../lib/forwarder/sink.ts';
import { KbindError } from '../../../lib/model/errors.ts';

/** A queue that remembers what it took, and that a test can take away. */
export class RecordingSink implements Sink {
  /** What waits at the instances' queue. */
  waiting = 0;
  readonly sent: Outgoing[] = [];
  away = false;
  /** Attempts that failed because the queue was away. */
  refused = 0;

  send(batch: readonly Outgoing[]): Promise<readonly number[]> {
    if (this.away) {
      this.refused += 1;
      return Promise.reject(new KbindError('unavailable', 'the queue is away'));
    }
    this.sent.push(...batch);
    return Promise.resolve([]);
  }

  backlog(): Promise<number> {
    return this.away
      ? Promise.reject(new KbindError('unavailable', 'the queue is away'))
      : Promise.resolve(this.waiting);
  }

  /** What was sent, as `controller namespace/name` or `sweep api`, heartbeats left out. */
  keys(from = 0): string[] {
    return this.sent.slice(from).flatMap(({ message }) => keyLine(message) ?? []);
  }

  sweeps(api: string): string[] {
    return this.sent.flatMap(({ message }) =>
      message.type === 'sweep' && (message.apis ?? []).includes(api) ? [message.id] : [],
    );
  }
}

function keyLine(message: ForwarderMessage): string | undefined {
  if (message.type === 'heartbeat') return undefined;
  if (message.type === 'sweep') return `sweep ${message.apis?.join(',') ?? ''}`;
  const { controller, namespace, name } = message;
  return `${controller} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}
