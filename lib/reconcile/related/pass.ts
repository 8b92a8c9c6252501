import type { Belief, WriteOptions } from '../../kube/types.ts';
import { resources } from '../../model/api.ts';
import { ageMs } from '../../model/clock.ts';
import { KbindError } from '../../model/errors.ts';
import type { AnyBinding, Connection } from '../../model/kinds.ts';
import { RELATED_FIELD_MANAGER } from '../../model/markers.ts';
import { connectionIsReady, providerEpoch } from '../../model/may-act.ts';
import type { RelatedEntry, Route } from '../../model/related.ts';
import type { Side, World } from '../world.ts';
import type { CopyOwner } from './who-made-it.ts';

/** How old a belief may be before it is renewed, ms: what is left must carry a write (spec §8). */
const RENEW_AFTER_MS = 2_500;

/** One route of one binding in one pass. */
export interface RoutePass {
  readonly world: World;
  readonly binding: AnyBinding;
  readonly owner: CopyOwner;
  readonly route: Route;
  readonly entries: readonly RelatedEntry[];
  readonly source: Side;
  readonly target: Side;
  /** Namespace that a Binding is confined to; undefined: all. */
  readonly namespace: string | undefined;
  readonly ground: Ground;
}

/** Where a route leads from and to. */
export const sidesOf = ({ direction }: Route, consumer: Side, provider: Side): { source: Side; target: Side } =>
  direction === 'FromProvider' ? { source: provider, target: consumer } : { source: consumer, target: provider };

/** Options of a write that rests on the binding and its Connection. */
export async function believing({ world, ground }: RoutePass): Promise<WriteOptions> {
  return { signal: world.signal, fieldManager: RELATED_FIELD_MANAGER, belief: await ground.believe() };
}

/**
 * What the writes of a pass rest on: this binding, of this generation, not deleting, and its Connection of this epoch. A
 * pass over many objects takes longer than a read is believed, so both are read again on the way.
 */
export class Ground {
  readonly #world: World;
  readonly #binding: AnyBinding;
  readonly #connection: Connection;
  #belief: Belief;
  #renewing: Promise<void> | undefined;

  constructor(world: World, binding: AnyBinding, connection: Connection, belief: Belief) {
    this.#world = world;
    this.#binding = binding;
    this.#connection = connection;
    this.#belief = belief;
  }

  /** Throws class `stale` when either has changed: the reconcile starts over. */
  async believe(): Promise<Belief> {
    if (ageMs(this.#world.clock, this.#belief.sentAt) > RENEW_AFTER_MS) {
      this.#renewing ??= this.#renew().finally(() => (this.#renewing = undefined));
      await this.#renewing;
    }
    return this.#belief;
  }

  /**
   * Asks for the binding itself once more, past every cache: what is deleted rests on no older spec than the copies that were
   * listed. Throws class `stale` when it has changed.
   */
  async confirm(): Promise<void> {
    const { consumer, signal } = this.#world;
    const { kind, metadata } = this.#binding;
    const ref = kind === 'ClusterBinding' ? resources.clusterBindings : resources.bindings;
    const { namespace, name, uid } = metadata;
    const now = await consumer.client.find(ref, { namespace, name }, { signal });
    if (now?.metadata.uid !== uid || !this.#isSame(now)) throw this.#changed();
  }

  #isSame({ metadata: { generation, deletionTimestamp } }: Pick<AnyBinding, 'metadata'>): boolean {
    return generation === this.#binding.metadata.generation && deletionTimestamp === undefined;
  }

  #changed(): KbindError {
    const { kind, metadata } = this.#binding;
    return new KbindError(
      'stale',
      `${kind} ${metadata.name} or its Connection changed while its related copies were made`,
    );
  }

  async #renew(): Promise<void> {
    const { reads } = this.#world;
    const { kind, metadata } = this.#binding;
    const bindings =
      kind === 'ClusterBinding'
        ? await reads.clusterBindings()
        : await reads.bindings({ namespace: metadata.namespace ?? '' });
    const connection = await reads.connection(this.#connection.metadata.name);
    const now = bindings.value.find(({ metadata: { uid } }) => uid === metadata.uid);
    const sameConnection =
      connectionIsReady(connection.value) && providerEpoch(connection.value) === providerEpoch(this.#connection);
    if (now === undefined || !this.#isSame(now) || !sameConnection) throw this.#changed();
    const older = bindings.sentAt.mono <= connection.sentAt.mono ? bindings : connection;
    this.#belief = { sentAt: older.sentAt };
  }
}
