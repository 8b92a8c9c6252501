import type { MetaObject } from '../../model/api.ts';
import { CONSUMER_CLUSTER_UID, RELATED_BINDING_ANNOTATION } from '../../model/markers.ts';

/** The binding that related copies belong to. */
export interface CopyOwner {
  /** UID of the consumer cluster. */
  readonly cluster: string;
  /** UID of the binding. */
  readonly binding: string;
}

/** `unmarked`: somebody else's object; `another`: a related copy of another binding or consumer. */
export type Maker = 'absent' | 'ours' | 'unmarked' | 'another';

/** Decides by this binding's UID. An object without it is never touched, whatever else it carries (spec §5). Pure. */
export function whoMade(target: MetaObject | undefined, owner: CopyOwner): Maker {
  if (target === undefined) return 'absent';
  const annotations = target.metadata.annotations ?? {};
  const binding = annotations[RELATED_BINDING_ANNOTATION];
  if (binding === undefined) return 'unmarked';
  const cluster = annotations[CONSUMER_CLUSTER_UID] ?? owner.cluster;
  return binding === owner.binding && cluster === owner.cluster ? 'ours' : 'another';
}
