import type { MetaObject } from '../../model/api.ts';
import { CONSUMER_CLUSTER_UID, CONSUMER_OBJECT_UID } from '../../model/markers.ts';

/** The consumer object that a copy belongs to. */
export interface Owner {
  /** UID of the consumer cluster. */
  readonly cluster: string;
  /** UID of the consumer object. */
  readonly object: string;
}

/** Provider target ownership. `unmarked`: no ownership markers at all; `another`: anything else, one marker of two included. */
export type Ownership = 'absent' | 'ours' | 'unmarked' | 'another';

/** True only when both ownership markers name this very object. */
export const carriesMarkersOf = (target: MetaObject, owner: Owner): boolean =>
  target.metadata.annotations?.[CONSUMER_CLUSTER_UID] === owner.cluster &&
  target.metadata.annotations[CONSUMER_OBJECT_UID] === owner.object;

/** Decides by the two ownership annotations. The label of the same name is ours alone and decides nothing. */
export function whoOwns(target: MetaObject | undefined, owner: Owner): Ownership {
  if (target === undefined) return 'absent';
  if (carriesMarkersOf(target, owner)) return 'ours';
  const annotations = target.metadata.annotations ?? {};
  const marked = CONSUMER_CLUSTER_UID in annotations || CONSUMER_OBJECT_UID in annotations;
  return marked ? 'another' : 'unmarked';
}

/** What a person is told of a foreign target (limits.md L33): which object, who holds it, how to release it. */
export function describeHolder(target: MetaObject): string {
  const annotations = target.metadata.annotations ?? {};
  const cluster = annotations[CONSUMER_CLUSTER_UID];
  const object = annotations[CONSUMER_OBJECT_UID];
  return `consumer cluster ${cluster ?? '(not named)'}, object UID ${object ?? '(not named)'}`;
}
