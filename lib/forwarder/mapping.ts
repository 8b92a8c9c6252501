import { keyOf, type MetaObject, type ObjectKey } from '../model/api.ts';
import { reconcileRequest, type ReconcileRequest } from '../model/request.ts';
import { changeOf } from '../queue/ids.ts';
import type { WatchSource } from './plan-set.ts';
import type { BindingView } from './related-watches.ts';
import type { Outgoing } from './sink.ts';

/** What the mapping may look at besides the event. */
export interface MappingContext {
  readonly cluster: string;
  /** Names of the Connections that refer to this Secret. */
  connectionsOf(secret: ObjectKey): readonly string[];
  /** Whether this consumer object carries the conflict label, as far as its watch has shown. */
  conflicts(api: string, key: ObjectKey): boolean;
  /** Bindings that a watch of related resources stands for. */
  relatedBindings(watch: string): readonly Pick<BindingView, 'controller' | 'key'>[];
  /** Provider key to consumer key (spec §7: a compile-time seam, identity by default). */
  toConsumer(api: string, key: ObjectKey): ObjectKey;
}

type Mapping<Type extends WatchSource['type']> = (
  source: Extract<WatchSource, { readonly type: Type }>,
  key: ObjectKey,
  context: MappingContext,
) => ReconcileRequest[];

const same =
  (controller: 'connection' | 'clusterbinding' | 'binding' | 'crd') =>
  (_source: unknown, key: ObjectKey, { cluster }: MappingContext): ReconcileRequest[] => [
    reconcileRequest(cluster, controller, key),
  ];

/** Which keys an object of each source stands for. A changed source and a changed copy name the same key. */
const table: { readonly [Type in WatchSource['type']]: Mapping<Type> } = {
  connections: same('connection'),
  clusterbindings: same('clusterbinding'),
  bindings: same('binding'),
  crds: same('crd'),
  secret: (_source, key, context) =>
    context.connectionsOf(key).map((name) => reconcileRequest(context.cluster, 'connection', { name })),
  exports: ({ connection }, _key, { cluster }) => [reconcileRequest(cluster, 'connection', { name: connection })],
  instances: ({ api }, key, { cluster }) => [reconcileRequest(cluster, 'instance', key, { api })],
  copies: ({ api }, key, context) => [
    reconcileRequest(context.cluster, 'instance', context.toConsumer(api, key), { api }),
  ],
  // Source and copy alike: the binding looks at both sides itself.
  related: ({ watch }, _key, context) =>
    context.relatedBindings(watch).map(({ controller, key }) => reconcileRequest(context.cluster, controller, key)),
  foreign: ({ api }, key, context) => {
    const consumer = context.toConsumer(api, key);
    return context.conflicts(api, consumer) ? [reconcileRequest(context.cluster, 'instance', consumer, { api })] : [];
  },
};

/** The requests of a key that a source showed. */
export function requestsFor(source: WatchSource, key: ObjectKey, context: MappingContext): ReconcileRequest[] {
  // The table's type ties each mapping to its source; the compiler cannot follow the lookup by a union.
  const mapping = table[source.type] as (
    source: WatchSource,
    key: ObjectKey,
    context: MappingContext,
  ) => ReconcileRequest[];
  return mapping(source, key, context);
}

/** The messages of an object that a source showed: the change is its uid and resourceVersion (design.md, rule 3). */
export function messagesFor(source: WatchSource, object: MetaObject, context: MappingContext): Outgoing[] {
  const change = changeOf(object.metadata);
  return requestsFor(source, keyOf(object), context).map((message) => outgoing(message, change));
}

/** A reconcile on the queue that its controller reads. */
export function outgoing(message: ReconcileRequest, change: string): Outgoing {
  return { queue: message.controller === 'instance' ? 'instances' : 'control', message, change };
}
