import { describe, expect, it } from 'vitest';
import { KbindError } from '../../../lib/model/errors.ts';
import type { Connection } from '../../../lib/model/kinds.ts';
import { createVisit } from '../../../lib/app/left-alone.ts';
import { createBreaker } from '../../../lib/queue/breaker.ts';
import type { Probe, Providers, Side } from '../../../lib/reconcile/world.ts';

const side = { which: 'provider', uid: 'p' } as Side;
const connection = (name: string): Connection => ({ metadata: { name } }) as Connection;
const silence = new KbindError('unavailable', 'no answer', { side: 'provider' });

function stage(): { breaker: ReturnType<typeof createBreaker>; opened: string[]; providers: Providers } {
  const opened: string[] = [];
  const providers: Providers = {
    open: ({ metadata }) => {
      opened.push(metadata.name);
      return Promise.resolve(side);
    },
    probe: ({ metadata }) => {
      opened.push(metadata.name);
      return Promise.resolve({ side } as Probe);
    },
  };
  return { breaker: createBreaker({ now: () => 0, monotonic: () => 0 }), opened, providers };
}

describe('a provider that answers nothing', () => {
  it('is not opened for a while: its keys are put off, which is no attempt', async () => {
    const { breaker, opened, providers } = stage();
    const first = createVisit(breaker, 'c', true);
    await first.guard(providers).open(connection('a'));
    first.failed(silence);
    const second = createVisit(breaker, 'c', true);
    await expect(second.guard(providers).open(connection('a'))).rejects.toMatchObject({
      errorClass: 'aborted',
      details: { leftAloneSeconds: 1 },
    });
    expect(opened).toEqual(['a']);
  });

  it('does not hold up the cluster’s other providers, nor its consumer', async () => {
    const { breaker, opened, providers } = stage();
    const first = createVisit(breaker, 'c', true);
    await first.guard(providers).open(connection('a'));
    first.failed(silence);
    const second = createVisit(breaker, 'c', true);
    expect(second.enterConsumer()).toBe(0);
    await second.guard(providers).open(connection('b'));
    expect(opened).toEqual(['a', 'b']);
  });

  it('is still looked at by Connections and bindings, which find out that it is back', async () => {
    const { breaker, providers } = stage();
    const instance = createVisit(breaker, 'c', true);
    await instance.guard(providers).open(connection('a'));
    instance.failed(silence);
    const control = createVisit(breaker, 'c', false);
    await control.guard(providers).probe(connection('a'));
    control.succeeded();
    await expect(createVisit(breaker, 'c', true).guard(providers).open(connection('a'))).resolves.toBe(side);
  });

  it('is not blamed for what the consumer did', async () => {
    const { breaker, providers } = stage();
    const visit = createVisit(breaker, 'c', true);
    await visit.guard(providers).open(connection('a'));
    visit.failed(new KbindError('unavailable', 'x', { side: 'consumer' }));
    const next = createVisit(breaker, 'c', true);
    expect(next.enterConsumer()).toBe(1);
    await expect(next.guard(providers).open(connection('a'))).resolves.toBe(side);
  });
});
