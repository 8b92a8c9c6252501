import { timestamp, type KubeObject } from '../api/object.ts';
import { CLEANUP, CRDS, isTrue, withCondition, type Crd, type CrdCondition, type CrdNames } from '../crd/model.ts';
import { resourceOf } from '../crd/resource.ts';
import { equal } from '../json/json.ts';
import { deleteObject } from '../rest/delete.ts';
import type { World } from '../rest/world.ts';
import type { Change } from '../storage/table.ts';
import { putStatus } from './crdstatus.ts';
import type { WorkQueue } from './queue.ts';

/** Accepts names, serves what is established, and cleans up after CustomResourceDefinitions that go. */
export class CrdController {
  readonly #world: World;
  readonly #queue: WorkQueue;

  constructor(world: World, queue: WorkQueue) {
    this.#world = world;
    this.#queue = queue;
  }

  /** Called for every change of a CustomResourceDefinition. */
  changed(change: Change): void {
    if (change.type === 'DELETED') {
      const { spec } = change.object as Crd;
      this.#world.registry.unregister({ group: spec.group, plural: spec.names.plural });
      this.#world.store.drop({ group: spec.group, plural: spec.names.plural });
      // Names that it held are free now.
      for (const crd of this.#all()) this.#enqueue(crd.metadata.name);
      return;
    }
    this.#serve(change.object as Crd);
    this.#enqueue(change.key);
  }

  /** Called when an instance of a custom resource is gone. */
  instanceGone(table: string): void {
    const [group = '', plural = ''] = table.split('/');
    const crd = this.#get(`${plural}.${group}`);
    if (crd?.metadata.deletionTimestamp) this.#enqueue(crd.metadata.name);
  }

  #enqueue(name: string): void {
    this.#queue.add(`crd ${name}`, () => this.#reconcile(name));
  }

  #serve(crd: Crd): void {
    if (isTrue(crd, 'Established')) this.#world.registry.register(resourceOf(crd));
  }

  #reconcile(name: string): void {
    const crd = this.#get(name);
    if (!crd) return;
    if (crd.metadata.deletionTimestamp) this.#finalize(crd);
    else this.#accept(crd);
  }

  #accept(crd: Crd): void {
    const now = timestamp(this.#world.now());
    const conflict = nameConflict(crd, this.#all());
    const accepted = conflict ? acceptable(crd, this.#all()) : crd.spec.names;
    const namesAccepted: CrdCondition = conflict
      ? { type: 'NamesAccepted', status: 'False', ...conflict }
      : { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found' };
    let next: Crd = { ...crd, status: { ...crd.status, acceptedNames: accepted } };
    next = withCondition(next, namesAccepted, now);
    if (!isTrue(crd, 'Established')) {
      const established: CrdCondition = conflict
        ? { type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' }
        : {
            type: 'Established',
            status: 'True',
            reason: 'InitialNamesAccepted',
            message: 'the initial names have been accepted',
          };
      next = withCondition(next, established, now);
    }
    next = approve(next, now);
    if (!equal(next, crd)) putStatus(this.#world, crd, next);
  }

  #finalize(crd: Crd): void {
    if (!crd.metadata.finalizers?.includes(CLEANUP)) return;
    const { store, registry } = this.#world;
    const resource = registry.get(crd.spec.group, crd.spec.names.plural);
    if (resource) {
      const table = store.table(resource);
      for (const object of table.values()) {
        if (!object.metadata.deletionTimestamp) deleteObject(this.#world, resource, object, { dryRun: false });
      }
      if (table.size > 0) return this.#waitForInstances(crd);
    }
    const finalizers = crd.metadata.finalizers.filter((each) => each !== CLEANUP);
    if (finalizers.length === 0) store.remove(CRDS, crd);
    else store.put(CRDS, { ...crd, metadata: { ...crd.metadata, finalizers } });
  }

  #waitForInstances(crd: Crd): void {
    const condition = {
      type: 'Terminating',
      status: 'True',
      reason: 'InstanceDeletionInProgress',
      message: 'CustomResource deletion is in progress',
    };
    const next = withCondition(crd, condition, timestamp(this.#world.now()));
    if (!equal(next, crd)) putStatus(this.#world, crd, next);
  }

  #get(name: string): Crd | undefined {
    return this.#world.store.table(CRDS).get(name) as Crd | undefined;
  }

  #all(): Crd[] {
    return [...this.#world.store.table(CRDS).values()].map((object: KubeObject) => object as Crd);
  }
}

const isProtected = (group: string): boolean => /(^|\.)(k8s|kubernetes)\.io$/.test(group);

function approve(crd: Crd, now: string): Crd {
  if (!isProtected(crd.spec.group)) return crd;
  const value = crd.metadata.annotations?.['api-approved.kubernetes.io'] ?? '';
  const approved = /^https?:\/\//.test(value);
  const condition = approved
    ? { status: 'True', reason: 'ApprovedAnnotation', message: `approved in ${value}` }
    : { status: 'False', reason: 'UnapprovedAnnotation', message: `not approved: ${JSON.stringify(value)}` };
  return withCondition(crd, { type: 'KubernetesAPIApprovalPolicyConformant', ...condition }, now);
}

type Conflict = { reason: string; message: string };

function othersOf(crd: Crd, all: Crd[]): CrdNames[] {
  return all
    .filter((other) => other.spec.group === crd.spec.group && other.metadata.name !== crd.metadata.name)
    .flatMap((other) =>
      other.status?.acceptedNames?.plural || other.status?.acceptedNames?.kind ? [other.status.acceptedNames] : [],
    );
}

const resourceNames = (names: CrdNames): string[] =>
  [names.plural, names.singular ?? '', ...(names.shortNames ?? [])].filter(Boolean);
const kindNames = (names: CrdNames): string[] => [names.kind, names.listKind ?? ''].filter(Boolean);

/** The last of the conflicts, which is the one that Kubernetes shows. */
function nameConflict(crd: Crd, all: Crd[]): Conflict | undefined {
  const others = othersOf(crd, all);
  const taken = new Set(others.flatMap(resourceNames));
  const kinds = new Set(others.flatMap(kindNames));
  const { plural, singular, shortNames, kind, listKind } = crd.spec.names;
  const conflicts: Conflict[] = [];
  const clash = (reason: string, name: string | undefined, set: Set<string>): void => {
    if (name && set.has(name)) conflicts.push({ reason, message: `${JSON.stringify(name)} is already in use` });
  };
  clash('PluralConflict', plural, taken);
  clash('SingularConflict', singular, taken);
  for (const name of shortNames ?? []) clash('ShortNamesConflict', name, taken);
  clash('KindConflict', kind, kinds);
  clash('ListKindConflict', listKind, kinds);
  return conflicts.at(-1);
}

/** The names that nobody else holds, and those that were accepted before. */
function acceptable(crd: Crd, all: Crd[]): CrdNames {
  const others = othersOf(crd, all);
  const taken = new Set(others.flatMap(resourceNames));
  const kinds = new Set(others.flatMap(kindNames));
  const before = crd.status?.acceptedNames ?? { plural: '', kind: '' };
  const { names } = crd.spec;
  const pick = (set: Set<string>, wanted: string | undefined, old: string | undefined): string =>
    wanted && !set.has(wanted) ? wanted : (old ?? '');
  const singular = pick(taken, names.singular, before.singular);
  const listKind = pick(kinds, names.listKind, before.listKind);
  const shortNames = (names.shortNames ?? []).filter((name) => !taken.has(name));
  return {
    plural: pick(taken, names.plural, before.plural),
    ...(singular && { singular }),
    kind: pick(kinds, names.kind, before.kind),
    ...(listKind && { listKind }),
    ...(shortNames.length > 0 && { shortNames }),
    ...(names.categories && { categories: names.categories }),
  };
}
