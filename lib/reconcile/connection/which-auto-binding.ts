import type { AnyBinding, Connection } from '../../model/kinds.ts';
import { isDeleting } from '../../model/crd.ts';
import { MANAGED_LABEL, TRUE } from '../../model/markers.ts';
import { emptyForLong } from './which-source.ts';

/** What becomes of the ClusterBinding that bears the Connection's name (spec §2.6, L20–L22, C22). Pure. */
export type AutoBindingStep =
  /** autoBind is off and there is none of ours, or nothing is exported and there is none. */
  | 'none'
  | 'create'
  | 'update'
  | 'keep'
  /** Nothing is exported, once: not believed yet. */
  | 'wait for a second empty list'
  | 'delete'
  | 'wait until it is gone'
  /** Somebody else's: never taken over, never deleted. */
  | 'leave it to its owner'
  /** Ours from before autoBind was turned off: kept, no longer maintained. */
  | 'no longer maintained';

export interface AutoBindingFacts {
  readonly connection: Connection;
  /** The ClusterBinding of that name. */
  readonly found: AnyBinding | undefined;
  /** Names of all exports, sorted. */
  readonly exports: readonly string[];
  /** False: the list may lack something. */
  readonly complete: boolean;
  readonly nowMs: number;
}

export function whichAutoBinding(facts: AutoBindingFacts): AutoBindingStep {
  const { connection, found, exports } = facts;
  const ours = found !== undefined && isOurs(found, connection);
  if (!connection.spec.autoBind) return ours && !isDeleting(found) ? 'no longer maintained' : 'none';
  if (found === undefined) return exports.length === 0 ? 'none' : 'create';
  if (!ours) return 'leave it to its owner';
  if (isDeleting(found)) return 'wait until it is gone';
  if (exports.length === 0) return isEmptyForSure(facts) ? 'delete' : 'wait for a second empty list';
  return sameNames(found, wantedNames(facts)) ? 'keep' : 'update';
}

/** Made by us for this very Connection: both marks must be there. */
export const isOurs = ({ metadata }: Pick<AnyBinding, 'metadata'>, connection: Connection): boolean =>
  metadata.labels?.[MANAGED_LABEL] === TRUE &&
  (metadata.ownerReferences ?? []).some(({ uid }) => uid === connection.metadata.uid);

/** A second successful and complete list, at least a minute after the first empty one. */
const isEmptyForSure = ({ connection, complete, nowMs }: AutoBindingFacts): boolean =>
  complete && emptyForLong({ emptySince: connection.status.exportsEmptySince, nowMs });

/** A list that may lack something takes no API away. */
export function wantedNames({ found, exports, complete }: AutoBindingFacts): string[] {
  const present = complete ? [] : (found?.spec.apis ?? []).map(({ name }) => name);
  return [...new Set([...exports, ...present])].sort();
}

const sameNames = ({ spec }: AnyBinding, names: readonly string[]): boolean =>
  spec.apis.length === names.length && spec.apis.every(({ name }, index) => name === names[index]);
