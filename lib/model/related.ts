import { resources, type MetaObject, type ResourceRef } from './api.ts';
import type { AnyBinding, RelatedResource } from './kinds.ts';
import { matchesLabels, requirementsOf, selectorText, type Requirement } from './label-selector.ts';
import { MANAGED_LABEL, RELATED_BINDING_ANNOTATION, TRUE } from './markers.ts';

/** What a binding's relatedResources select (spec §5). Pure: shared by the controller and the forwarder. */

type Kind = RelatedResource['resource'];
type Direction = RelatedResource['direction'];

/** One kind in one direction: all entries of a route act as a union, and its copies are cleaned up against that union. */
export interface Route {
  readonly name: string;
  readonly direction: Direction;
  readonly ref: ResourceRef;
}

const route = (direction: Direction, resource: Kind): Route => ({
  name: `${direction}/${resource}`,
  direction,
  ref: resources[resource],
});

/** Every route that there is. */
export const routes: readonly Route[] = [
  route('FromProvider', 'secrets'),
  route('FromProvider', 'configmaps'),
  route('FromConsumer', 'secrets'),
  route('FromConsumer', 'configmaps'),
];

/** One entry, ready to be asked for. */
export interface RelatedEntry {
  /** How a person finds it: `relatedResources[0] (secrets FromProvider)`. */
  readonly title: string;
  /** Undefined: any name. */
  readonly names: readonly string[] | undefined;
  readonly requirements: readonly Requirement[];
  /** What is wrong with its selector; such an entry selects nothing and hides what it would select. */
  readonly problem: string | undefined;
}

/** The longest name of a Secret or ConfigMap, and what may stand in it: other names are nobody's. */
const OBJECT_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

function entryOf({ resource, direction, selector }: RelatedResource, position: number): RelatedEntry {
  const title = `relatedResources[${position}] (${resource} ${direction})`;
  const found = requirementsOf(selector?.labelSelector);
  const names = selector?.names === undefined || selector.names.length === 0 ? undefined : selector.names;
  return {
    title,
    names: names === undefined ? undefined : [...new Set(names)].filter((name) => OBJECT_NAME.test(name)),
    requirements: 'problem' in found ? [] : found,
    problem: 'problem' in found ? found.problem : undefined,
  };
}

/** The entries of one route, in the binding's order. */
export const entriesOf = (
  { spec }: { readonly spec: Pick<AnyBinding['spec'], 'relatedResources'> },
  { direction, ref }: Route,
): RelatedEntry[] =>
  spec.relatedResources.flatMap((entry, position) =>
    entry.direction === direction && entry.resource === ref.resource ? [entryOf(entry, position)] : [],
  );

/** An entry that takes everything in scope. */
export const selectsAll = ({ names, requirements, problem }: RelatedEntry): boolean =>
  names === undefined && requirements.length === 0 && problem === undefined;

/** Copies of ours are never sources: two directions, or two consumers of one provider, would copy each other's copies. */
export const isCopy = ({ metadata }: MetaObject): boolean =>
  metadata.labels?.[MANAGED_LABEL] === TRUE || RELATED_BINDING_ANNOTATION in (metadata.annotations ?? {});

/** Whether an object is a source of one of the entries. One that is being deleted is none any more, as with instances. */
export const isSelected = (entries: readonly RelatedEntry[], object: MetaObject): boolean =>
  !isCopy(object) &&
  object.metadata.deletionTimestamp === undefined &&
  entries.some(
    ({ names, requirements, problem }) =>
      problem === undefined &&
      (names === undefined || names.includes(object.metadata.name)) &&
      matchesLabels(requirements, object.metadata.labels),
  );

/** What is asked of a server for one entry: never more than it selects, and not our own copies. */
export interface SourceQuery {
  readonly labelSelector: string;
  readonly fieldSelector?: string;
}

/** One query for each name, one for an entry without names. RBAC can be held to names: `resourceNames` covers such lists. */
export function sourceQueries({ names, requirements, problem }: RelatedEntry): SourceQuery[] {
  if (problem !== undefined) return [];
  const labelSelector = [selectorText(requirements), `${MANAGED_LABEL}!=${TRUE}`].filter((text) => text).join(',');
  if (names === undefined) return [{ labelSelector }];
  return names.map((name) => ({ labelSelector, fieldSelector: `metadata.name=${name}` }));
}
