import { describe, expect, it } from 'vitest';
import { errorClasses, KbindError, type ErrorClass } from '../../../lib/model/errors.ts';
import { done, wait, waitForConflict } from '../../../lib/model/outcome.ts';
import type { ReconcileRequest, SweepRequest } from '../../../lib/model/request.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { parseDeadLetter } from '../../../lib/queue/dead-letters.ts';
import { deadLetterId } from '../../../lib/queue/ids.ts';
import { requestKey } from '../../../lib/model/request.ts';
import { retryPolicy } from '../../../lib/queue/retry-policy.ts';
import { judge, settle, settleMalformed, type Result, type Run, type Settling } from '../../../lib/queue/settle.ts';
import { CLUSTER, instanceRequest } from '../../support/queue/events.ts';
import { recordCounters, recordLog, recordQueues } from '../../support/queue/recorded.ts';

const NOW = 1_700_000_100_000;
const RECEIVED = 1_700_000_000_000;
const circumstances = { receivedAt: RECEIVED, chance: 0.5 };
const failed = (errorClass: ErrorClass, details = {}): Result => ({
  type: 'error',
  error: new KbindError(errorClass, `a ${errorClass} error`, details),
});
const sweep: SweepRequest = { v: 1, type: 'sweep', cluster: CLUSTER, id: 's1', retry: true };

function settling(): Settling & {
  queues: ReturnType<typeof recordQueues>;
  log: ReturnType<typeof recordLog>;
  metrics: ReturnType<typeof recordCounters>;
} {
  return {
    queues: recordQueues(),
    clock: { ...systemClock, now: () => NOW },
    random: () => 0.5,
    log: recordLog(),
    metrics: recordCounters(),
    versions: { 'kbind-serverless': '0.0.0' },
  };
}

const run: Run = {
  receivedAt: RECEIVED,
  startedAt: NOW - 40,
  reconcileId: 'r-1',
  trace: ['Consumer object exists? → yes'],
};

describe('the retry table', () => {
  it.each(errorClasses.map((errorClass) => [errorClass, retryPolicy[errorClass].action] as const))(
    'does with %s: %s',
    (errorClass, action) => {
      const verdict = judge(instanceRequest('w'), failed(errorClass), circumstances);
      const expected = { retry: 'Retried', wait: 'Waiting', 'dead-letter': 'DeadLettered' }[action];
      expect(verdict.metric).toBe(expected);
    },
  );

  it.each(errorClasses.filter((errorClass) => retryPolicy[errorClass].action === 'retry'))(
    'gives up %s after ten attempts, and not after nine',
    (errorClass) => {
      const after = (attempt: number): string =>
        judge(instanceRequest('w', { attempt }), failed(errorClass), circumstances).type;
      expect(after(8)).toBe('requeue');
      expect(after(9)).toBe('dead-letter');
    },
  );

  it.each(errorClasses.filter((errorClass) => retryPolicy[errorClass].action === 'wait'))(
    'never gives up %s',
    (errorClass) => {
      const verdict = judge(instanceRequest('w', { attempt: 9, waited: 600 }), failed(errorClass), circumstances);
      expect(verdict).toMatchObject({ type: 'requeue', request: { attempt: 9 } });
    },
  );
});

describe('verdicts', () => {
  it('done is acknowledged', () => {
    expect(judge(instanceRequest('w'), { type: 'outcome', outcome: done('synced') }, circumstances)).toMatchObject({
      type: 'ack',
      metric: 'Done',
    });
  });

  it('a wait doubles, remembers how long it took and is no attempt', () => {
    const request = instanceRequest('w', { attempt: 3, firstFailure: 5, waited: 60 });
    const verdict = judge(request, { type: 'outcome', outcome: waitForConflict('c') }, circumstances);
    expect(verdict).toMatchObject({ type: 'requeue', delaySeconds: 120, request: { attempt: 0, waited: 120 } });
    expect(verdict).not.toHaveProperty('request.firstFailure');
  });

  it('the first failure of a chain is when the message was received first, alike on redelivery', () => {
    expect(judge(instanceRequest('w'), failed('internal'), circumstances)).toMatchObject({
      delaySeconds: 1,
      request: { attempt: 1, firstFailure: RECEIVED },
    });
  });

  it('a later failure keeps the first one and forgets the waits', () => {
    const verdict = judge(
      instanceRequest('w', { attempt: 2, firstFailure: 7, waited: 8 }),
      failed('internal'),
      circumstances,
    );
    expect(verdict).toMatchObject({ delaySeconds: 4, request: { attempt: 3, firstFailure: 7 } });
    expect(verdict).not.toHaveProperty('request.waited');
  });

  it('honours Retry-After', () => {
    expect(judge(instanceRequest('w'), failed('throttled', { retryAfterSeconds: 77 }), circumstances)).toMatchObject({
      delaySeconds: 77,
    });
  });

  it('a key that a tick enqueued starts no chain of retries and leaves no dead letter', () => {
    for (const errorClass of ['internal', 'unavailable', 'invalid', 'malformed'] as const) {
      expect(judge(instanceRequest('w', { retry: false }), failed(errorClass), circumstances)).toMatchObject({
        type: 'ack',
        metric: 'SweepKeyFailed',
      });
    }
  });

  it('a key that a tick enqueued may wait, and stays without retry', () => {
    const verdict = judge(
      instanceRequest('w', { retry: false }),
      { type: 'outcome', outcome: wait('w', 2, 60) },
      circumstances,
    );
    expect(verdict).toMatchObject({ type: 'requeue', request: { retry: false } });
  });

  it('what is left alone is put off as it was', () => {
    const request = instanceRequest('w', { attempt: 4, waited: 16, firstFailure: 3 });
    const verdict = judge(request, failed('aborted', { leftAloneSeconds: 4 }), circumstances);
    expect(verdict).toEqual({ type: 'requeue', metric: 'Postponed', reason: 'aborted', request, delaySeconds: 6 });
  });

  it('what is left alone and was enqueued by a tick is left to the next one', () => {
    const request = instanceRequest('w', { retry: false });
    expect(judge(request, failed('aborted', { leftAloneSeconds: 4 }), circumstances)).toMatchObject({
      type: 'ack',
      metric: 'SweepKeyFailed',
    });
  });

  it('what did not start is put off as it was', () => {
    const request = instanceRequest('w', { attempt: 9 });
    expect(judge(request, { type: 'postponed', reason: 'no time', seconds: 1 }, circumstances)).toMatchObject({
      type: 'requeue',
      request,
    });
  });

  it('a sweep that fails is a chain as well', () => {
    expect(judge(sweep, failed('unavailable'), circumstances)).toMatchObject({
      type: 'requeue',
      request: { type: 'sweep', attempt: 1, firstFailure: RECEIVED },
    });
    expect(judge({ ...sweep, attempt: 9 }, failed('unavailable'), circumstances)).toMatchObject({
      type: 'dead-letter',
    });
  });
});

describe('settling', () => {
  it('puts a requeue on work, with its due time', async () => {
    const context = settling();
    await settle(instanceRequest('w'), { type: 'outcome', outcome: wait('w', 2, 60) }, run, context);
    expect(context.queues.sent[0]).toMatchObject({ queue: 'work', message: { delaySeconds: 2 } });
    expect(context.queues.bodies('work')).toEqual([
      { v: 1, type: 'due', request: { ...instanceRequest('w'), waited: 2 }, dueAt: NOW + 2000, delaySeconds: 2 },
    ]);
  });

  it('puts a sweep itself on work', async () => {
    const context = settling();
    await settle(sweep, failed('unavailable'), run, context);
    expect(context.queues.bodies('work')).toEqual([{ ...sweep, attempt: 1, firstFailure: RECEIVED }]);
  });

  it('writes a dead letter that explains itself, once per chain', async () => {
    const context = settling();
    const request = instanceRequest('w', { attempt: 9, firstFailure: 1_699_999_000_000 });
    const error = new KbindError('unavailable', 'no answer\u0007\nfrom it', {
      verb: 'get',
      api: 'widgets.example.org',
      key: { namespace: 'default', name: 'w' },
      status: 503,
      side: 'provider',
    });
    await settle(request, { type: 'error', error }, run, context);
    const [entry] = context.queues.sent;
    expect(entry?.queue).toBe('deadLetters');
    expect(entry?.message.deduplicationId).toBe(deadLetterId(requestKey(request), 1_699_999_000_000));
    expect(parseDeadLetter(entry?.message.body ?? '')).toEqual({
      v: 1,
      type: 'dead-letter',
      request,
      firstFailure: 1_699_999_000_000,
      lastFailure: NOW,
      attempts: 10,
      error: {
        class: 'unavailable',
        message: 'no answer from it',
        verb: 'get',
        api: 'widgets.example.org',
        object: 'default/w',
        status: 503,
        side: 'provider',
      },
      trace: run.trace,
      versions: { 'kbind-serverless': '0.0.0' },
    });
  });

  describe('an object that is refused for what it is', () => {
    const refused = (version: string) => failed('invalid', { refused: `uid-1/${version}` });
    async function idAfter(request: ReconcileRequest, result: Result, receivedAt: number): Promise<string | undefined> {
      const context = settling();
      await settle(request, result, { ...run, receivedAt }, context);
      return context.queues.sent[0]?.message.deduplicationId;
    }

    it('leaves one letter, however many messages name it: its creation, and the echo of our own finalizer', async () => {
      const first = await idAfter(instanceRequest('w'), refused('7'), RECEIVED);
      expect(await idAfter(instanceRequest('w'), refused('7'), RECEIVED + 90)).toBe(first);
      expect(await idAfter(instanceRequest('other'), refused('7'), RECEIVED)).not.toBe(first);
    });

    it('leaves another one when it was changed, and when a replay has tried it again', async () => {
      const first = await idAfter(instanceRequest('w'), refused('7'), RECEIVED);
      expect(await idAfter(instanceRequest('w'), refused('8'), RECEIVED)).not.toBe(first);
      const replayed = instanceRequest('w', { firstFailure: RECEIVED + 1 });
      expect(await idAfter(replayed, refused('7'), RECEIVED + 2)).not.toBe(first);
    });
  });

  it('logs one line with the trace and the reconcile id, and counts', async () => {
    const context = settling();
    await settle(instanceRequest('w'), failed('internal'), run, context);
    expect(context.log.lines).toHaveLength(1);
    expect(context.log.lines[0]).toMatchObject({
      level: 'warn',
      message: 'work failed',
      fields: {
        reconcileId: 'r-1',
        trace: run.trace,
        key: requestKey(instanceRequest('w')),
        errorClass: 'internal',
        tookMs: 40,
      },
    });
    expect(context.metrics.of('Retried')).toBe(1);
  });

  it.each(['work', 'deadLetters'] as const)(
    'throws when %s does not take what follows, and counts nothing',
    async (queue) => {
      const context = settling();
      context.queues.failing.add(queue);
      const result = queue === 'work' ? failed('internal') : failed('invalid');
      await expect(settle(instanceRequest('w'), result, run, context)).rejects.toThrow(/does not answer/);
      expect(context.log.lines).toEqual([]);
    },
  );

  it('dead-letters a message that could not be read, with the reason and its body', async () => {
    const context = settling();
    await settleMalformed(
      { messageId: 'm', body: '{"v":2}', sentAt: 5 },
      new KbindError('malformed', 'v: must be 1'),
      context,
    );
    const [body] = context.queues.bodies('deadLetters');
    expect(body).toMatchObject({ body: '{"v":2}', error: { class: 'malformed', message: 'v: must be 1' } });
    expect(parseDeadLetter(JSON.stringify(body))).toEqual(body);
  });
});
