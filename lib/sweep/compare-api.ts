import { keyOf, keyText, type KubeObject, type ObjectKey } from '../model/api.ts';
import { isDeleting } from '../model/crd.ts';
import { isError, KbindError } from '../model/errors.ts';
import { CONSUMER_CLUSTER_UID, SYNCER_FINALIZER } from '../model/markers.ts';
import { reconcileRequest, type SweepCursor, type SweepRequest } from '../model/request.ts';
import type { ListOptions } from '../kube/types.ts';
import { hasFinalizer } from '../reconcile/object-writes.ts';
import { identityMapper, type Side, type World } from '../reconcile/world.ts';
import { orderText } from './key-order.ts';
import { mergeSides, type Pairing } from './merge.ts';
import { judge, type Judgement, type SweptApi } from './needs-work.ts';
import type { Outbox } from './outbox.ts';
import { PagedList } from './paged-list.ts';
import { TallyCounter, type Tally } from './tally.ts';

/** One pass over the instances of one API. */
export interface Pass {
  readonly world: World;
  readonly swept: SweptApi;
  readonly request: SweepRequest;
  readonly outbox: Outbox;
  /** Absent: the consumer's side only. */
  readonly provider: Side | undefined;
  readonly outOfTime: () => boolean;
}

/** A pass ends with its tally, or early with where it goes on. */
export type PassResult = { readonly tally: Tally } | { readonly cursor: SweepCursor; readonly tally: Tally };

/** The provider's side failed: the pass goes on without it. */
class ProviderLost extends Error {
  override readonly name = 'ProviderLost';
}

const askProvider = async <T>(ask: Promise<T>): Promise<T> => {
  try {
    return await ask;
  } catch (error) {
    // A token that ran out and a page that is too large are the list's own business.
    if (!(error instanceof KbindError) || error.errorClass === 'aborted' || error.errorClass === 'expired') throw error;
    throw new ProviderLost(error.message, { cause: error });
  }
};

/** Compares both sides and puts the keys that need work into the outbox. */
export async function compareApi(
  pass: Pass,
  from: SweepCursor | undefined,
  start: Tally | undefined,
): Promise<PassResult> {
  const counter = new TallyCounter(start);
  if (pass.provider === undefined) counter.withoutProvider();
  const walk = new Walk(pass, from);
  try {
    const cursor = await walk.run(counter);
    return cursor === undefined ? { tally: counter.tally } : { cursor, tally: counter.tally };
  } catch (error) {
    if (!(error instanceof ProviderLost)) throw error;
    const { log, metrics } = pass.world;
    log.warn('sweep goes on without the provider', { api: pass.swept.api.name, error: error.message });
    metrics.count('SweepProviderLost', 1);
    counter.withoutProvider();
    return compareApi({ ...pass, provider: undefined }, walk.cursor(), counter.tally);
  }
}

/** The lists of one pass and how far it has come. */
class Walk {
  readonly #pass: Pass;
  readonly #consumer: PagedList;
  readonly #provider: PagedList | undefined;
  #after: string | undefined;
  #ordered = true;

  constructor(pass: Pass, from: SweepCursor | undefined) {
    const { world, swept, provider } = pass;
    this.#pass = pass;
    this.#after = from?.after;
    this.#consumer = new PagedList({
      load: (page) => world.consumer.client.list(swept.api.ref, { ...this.#options(), ...page }),
      keyOf: sourceKey,
      from: from?.consumer,
      after: from?.after,
    });
    // Another mapper gives copies another order: they are looked up one by one.
    const listed = world.mapper === identityMapper ? provider : undefined;
    const labelSelector = `${CONSUMER_CLUSTER_UID}=${swept.cluster}`;
    this.#provider =
      listed === undefined
        ? undefined
        : new PagedList({
            load: (page) => loadCopies(listed, swept, { ...this.#options(), labelSelector, ...page }),
            keyOf: sourceKey,
            from: from?.provider,
            after: from?.after,
          });
  }

  #options(): ListOptions {
    const { namespace } = this.#pass.request;
    return { signal: this.#pass.world.signal, ...(namespace === undefined ? {} : { namespace }) };
  }

  /** Where to go on: without an order, the present pages are seen again from their beginning. */
  cursor(): SweepCursor {
    return {
      api: this.#pass.swept.api.name,
      consumer: this.#consumer.position,
      provider: this.#provider?.position,
      ...(this.#ordered && this.#after !== undefined ? { after: this.#after } : {}),
    };
  }

  /** Walks until the end, or until it is to go on later: at least one key is compared, so that a sweep always comes forward. */
  async run(counter: TallyCounter): Promise<SweepCursor | undefined> {
    const sides = { consumer: this.#consumer, provider: this.#provider, sourceKey, copyKey: sourceKey };
    let compared = 0;
    for await (const pairing of mergeSides(sides)) {
      if (compared > 0 && (this.#pass.outOfTime() || this.#leavesRoom())) return this.cursor();
      this.#watchOrder(pairing, counter);
      await this.#compare(pairing, counter);
      this.#after = pairing.key;
      compared += 1;
    }
    return undefined;
  }

  /** Without an order the next visit would begin at the same page, and tell the same keys for ever. */
  #leavesRoom(): boolean {
    return this.#ordered && this.#pass.outbox.crowded;
  }

  /** Without an order keys may be seen twice when the sweep goes on: what was counted says nothing then. */
  #watchOrder({ certain }: Pairing, counter: TallyCounter): void {
    if (certain || this.#provider === undefined) return;
    this.#ordered = false;
    counter.withoutProvider();
  }

  async #compare(pairing: Pairing, counter: TallyCounter): Promise<void> {
    const { source } = pairing;
    if (source === undefined) return this.#withoutSource(pairing);
    const copy = await this.#copyOf(pairing, source);
    const judgement = judgeAny(this.#pass.swept, source, copy);
    counter.instance(judgement, hasFinalizer(source, SYNCER_FINALIZER));
    if (judgement.work !== undefined) await this.#enqueue(keyOf(source), judgement.work);
  }

  async #copyOf({ copy, certain }: Pairing, source: KubeObject): Promise<KubeObject | undefined | 'unknown'> {
    const { world, swept, provider } = this.#pass;
    if (certain) return copy;
    if (provider === undefined) return 'unknown';
    const key = world.mapper.toProvider(swept.api.name, keyOf(source));
    return askProvider(provider.client.find(swept.api.ref, key, { signal: world.signal }));
  }

  /** A copy whose source is gone: looked up once more, and reported. Nothing deletes it unasked. */
  async #withoutSource({ copy }: Pairing): Promise<void> {
    const { world, swept } = this.#pass;
    if (copy === undefined || isDeleting(copy)) return;
    const key = keyOf(copy);
    const source = await world.consumer.client.find(swept.api.ref, key, { signal: world.signal });
    if (source !== undefined) {
      const { work } = judgeAny(swept, source, copy);
      if (work !== undefined) await this.#enqueue(key, work);
      return;
    }
    world.log.warn('provider copy without a source', { api: swept.api.name, key: keyText(key) });
    world.metrics.count('CopiesWithoutSource', 1);
  }

  async #enqueue(key: ObjectKey, reason: string): Promise<void> {
    const { world, swept, request, outbox } = this.#pass;
    world.metrics.count('SweepEnqueued', 1, { reason });
    if (!request.retry && !OWN_CHAIN.has(reason)) world.metrics.count('BackstopFound', 1, { reason });
    await outbox.add(reconcileRequest(world.cluster, 'instance', key, { api: swept.api.name, retry: request.retry }));
  }
}

/** What cannot be compared (nested too deeply) holds up none of the others: its own reconcile says what is wrong. */
function judgeAny(swept: SweptApi, source: KubeObject, copy: KubeObject | undefined | 'unknown'): Judgement {
  try {
    return judge(swept, source, copy);
  } catch (error) {
    if (!isError(error, 'invalid')) throw error;
    return { work: 'cannot be compared', binding: undefined, synced: false };
  }
}

const sourceKey = (object: KubeObject): string => orderText(keyOf(object));

/** What waits in a chain of its own meanwhile: a backstop that finds it says nothing about events. */
const OWN_CHAIN: ReadonlySet<string> = new Set(['conflict', 'deleting', 'to be drained', 'the copy is going']);

/** A page of our copies. What the list itself can recover from is let through. */
async function loadCopies(provider: Side, swept: SweptApi, options: ListOptions) {
  try {
    return await provider.client.list(swept.api.ref, options);
  } catch (error) {
    if (isError(error, 'expired') || (isError(error, 'invalid') && options.limit !== 1)) throw error;
    return askProvider(Promise.reject(error as Error));
  }
}
