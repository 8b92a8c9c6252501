import type { KubeObject } from '../model/api.ts';
import { keyOf } from '../model/api.ts';
import { isDeleting } from '../model/crd.ts';
import type { AnyBinding, Connection } from '../model/kinds.ts';
import { CONFLICT_MARKER, SYNCER_FINALIZER } from '../model/markers.ts';
import { connectionIsReady } from '../model/may-act.ts';
import { isOrphan } from '../reconcile/instance/delete.ts';
import { drainingBinding } from '../reconcile/instance/is-it-drained.ts';
import { needsApply } from '../reconcile/instance/needs-apply.ts';
import { statusToCopy } from '../reconcile/instance/status-to-copy.ts';
import type { InstanceApi } from '../reconcile/instance/which-api.ts';
import { coveringBinding, whyNotBound, type BindingLists } from '../reconcile/instance/which-binding.ts';
import { whoOwns } from '../reconcile/instance/who-owns-it.ts';
import { hasFinalizer } from '../reconcile/object-writes.ts';

/** What one API's instances are compared by. */
export interface SweptApi {
  readonly api: InstanceApi;
  /** UID of the consumer cluster. */
  readonly cluster: string;
  readonly lists: BindingLists;
  /** The Connection that the CRD is pinned to. */
  readonly connection: Connection | undefined;
  /** Latest `Date` of the consumer's API server, epoch ms. */
  readonly serverDate: number | undefined;
}

/** What a comparison says of one instance. */
export interface Judgement {
  /** Why it needs a reconcile; undefined: it does not. */
  readonly work: string | undefined;
  /** The binding that it counts for. */
  readonly binding: AnyBinding | undefined;
  /** Its copy is as it should be. */
  readonly synced: boolean;
}

/**
 * Whether an instance needs work, by the questions that its reconcile asks (design.md, rule 10).
 * @param copy what the provider holds under its name with our cluster's label; `unknown` where it could not be asked.
 */
export function judge(swept: SweptApi, source: KubeObject, copy: KubeObject | undefined | 'unknown'): Judgement {
  const instance = { api: swept.api.name, namespaced: swept.api.ref.namespaced, key: keyOf(source) };
  const binding = coveringBinding(swept.lists, instance, swept.api.connection);
  const ours = hasFinalizer(source, SYNCER_FINALIZER);
  const facts = { serverDate: swept.serverDate, connection: swept.api.connection };
  if (ours && drainingBinding(swept.lists, instance, facts) !== undefined) {
    return { work: 'to be drained', binding, synced: false };
  }
  if (isDeleting(source)) return { work: ours ? whyDelete(swept, source) : undefined, binding, synced: false };
  const bound = swept.api.syncs && whyNotBound(binding, swept.api.connection, swept.connection) === undefined;
  if (!bound) return { work: undefined, binding, synced: false };
  if (!ours) return { work: 'no finalizer', binding, synced: false };
  if (copy === 'unknown') return { work: undefined, binding, synced: false };
  const work = whySync(swept, source, copy);
  return { work, binding, synced: work === undefined };
}

/** A deletion that could do nothing now is left to regained readiness. */
function whyDelete({ connection }: SweptApi, source: KubeObject): string | undefined {
  const reachable = connectionIsReady(connection) || (connection !== undefined && isDeleting(connection));
  return reachable || isOrphan(source) ? 'deleting' : undefined;
}

function whySync({ api, cluster }: SweptApi, source: KubeObject, copy: KubeObject | undefined): string | undefined {
  const { labels, annotations } = source.metadata;
  if (labels?.[CONFLICT_MARKER] !== undefined || annotations?.[CONFLICT_MARKER] !== undefined) return 'conflict';
  const owner = { cluster, object: source.metadata.uid };
  const ownership = whoOwns(copy, owner);
  if (copy === undefined) return 'no copy';
  if (ownership !== 'ours') return 'the copy is not ours';
  if (isDeleting(copy)) return 'the copy is going';
  const apply = needsApply(source, copy, owner);
  if (apply !== 'no') return apply === 'drifted' ? 'drifted spec' : 'another applied hash or a marker missing';
  return statusToCopy(api, source, copy) === undefined ? undefined : 'differing status';
}
