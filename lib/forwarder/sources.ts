import type { KubeObject, MetaObject } from '../model/api.ts';
import { KbindError } from '../model/errors.ts';
import type { AnyBinding } from '../model/kinds.ts';
import type { KubeClient } from '../kube/types.ts';
import type { ConsumerState } from './consumer-state.ts';
import { messagesFor, outgoing, requestsFor, type MappingContext } from './mapping.ts';
import { conflictingObjects, type WantedWatch, type WatchSource } from './plan-set.ts';
import type { ConfirmedClient, ProviderPool } from './provider-pool.ts';
import type { Outgoing } from './sink.ts';
import type { SweptSide } from './sweep-owed.ts';
import type { ObjectEvent, Standing, WatchTask } from './watcher.ts';

/** What the watches of all sources share. */
export interface SourceContext {
  readonly state: ConsumerState;
  readonly mapping: MappingContext;
  readonly consumer: ConfirmedClient;
  readonly providers: ProviderPool;
  put(message: Outgoing): void;
  /** What should be watched may have changed. */
  changed(): void;
  standing(api: string, side: SweptSide, standing: Standing | undefined): void;
}

type Source<Type extends WatchSource['type']> = Extract<WatchSource, { readonly type: Type }>;

const WATCHED_WHOLE: ReadonlySet<WatchSource['type']> = new Set(['connections', 'clusterbindings', 'bindings']);

/** What differs between sources. */
interface Behaviour {
  list(client: KubeClient, signal: AbortSignal): Promise<string>;
  event(event: ObjectEvent): void;
  stands?(standing: Standing): void;
  lost?(): void;
}

/** The task that keeps one wanted watch. */
export function watchTask(wanted: WantedWatch, context: SourceContext): WatchTask {
  const { id, source, ref, namespace, labelSelector, fieldSelector } = wanted;
  const behaviour = behaviourOf(wanted, context);
  const provider = 'connection' in source ? source.connection : undefined;
  return {
    id,
    type: source.type,
    ref,
    namespace,
    labelSelector,
    fieldSelector,
    // The specs of Connections and bindings say what to watch; of everything else the key is enough.
    metadataOnly: !WATCHED_WHOLE.has(source.type),
    client: () => (provider === undefined ? context.consumer.confirm() : providerClient(provider, context)),
    list: (client, signal) => behaviour.list(client, signal),
    stands: (standing) => behaviour.stands?.(standing),
    lost: () => behaviour.lost?.(),
    event: (event) => behaviour.event(event),
    failed: (error) => {
      if (provider !== undefined) context.providers.failed(provider, error);
    },
  };
}

async function providerClient(name: string, { state, providers }: SourceContext): Promise<KubeClient> {
  const connection = state.connections.get(name);
  // The watch is about to be stopped: nothing is asked of a provider whose Connection is gone.
  if (connection === undefined) throw new KbindError('unavailable', `Connection ${name} is gone`);
  return providers.client(name, connection);
}

function behaviourOf(wanted: WantedWatch, context: SourceContext): Behaviour {
  const { source } = wanted;
  switch (source.type) {
    case 'connections':
      return connections(wanted, context);
    case 'crds':
      return crds(wanted, context);
    case 'instances':
      return instances(wanted, source, context);
    case 'copies':
      return copies(wanted, source, context);
    case 'foreign':
      return foreign(wanted, source, context);
    case 'exports':
      return exportsOf(wanted, source, context);
    case 'related':
      return related(wanted, source, context);
    case 'clusterbindings':
      return bindings(wanted, 'ClusterBinding', context);
    case 'bindings':
      return bindings(wanted, 'Binding', context);
    default:
      return controlPlane(wanted, context);
  }
}

/** Few objects: after a gap each of their keys is forwarded, those of absent ones by whoever knows them. */
function controlPlane(wanted: WantedWatch, context: SourceContext): Behaviour {
  const { ref, source } = wanted;
  return {
    async list(client, signal) {
      const page = await client.listAllMetadata(ref, { ...selectors(wanted), signal });
      if (signal.aborted) return page.resourceVersion;
      for (const object of page.items) forward(wanted, object, context);
      if (source.type === 'secret' && page.items.length === 0) {
        const change = `absent|${page.resourceVersion}`;
        for (const request of requestsFor(source, source.secret, context.mapping))
          context.put(outgoing(request, change));
      }
      return page.resourceVersion;
    },
    event: ({ object }) => forward(wanted, object, context),
  };
}

/**
 * What a provider exports is read by its Connection, also what is exported no longer: after a gap the Connection itself is
 * forwarded, under an id of its own (design.md, rule 3). The ids of what is still there would say that nothing has changed.
 */
function exportsOf(wanted: WantedWatch, { connection }: Source<'exports'>, context: SourceContext): Behaviour {
  return {
    list: startOf(wanted),
    event: ({ object }) => forward(wanted, object, context),
    stands({ gap, resourceVersion, connects }) {
      if (!gap) return;
      const change = `exports|${wanted.fingerprint}|${resourceVersion}|${connects}`;
      for (const request of requestsFor(wanted.source, { name: connection }, context.mapping)) {
        context.put(outgoing(request, change));
      }
    },
  };
}

function connections(wanted: WantedWatch, context: SourceContext): Behaviour {
  const { state } = context;
  return {
    async list(client, signal) {
      const page = await client.listAll(wanted.ref, { signal });
      if (signal.aborted) return page.resourceVersion;
      forwardGone(wanted, state.replaceConnections(page.items), page.resourceVersion, context);
      for (const object of page.items) forward(wanted, object, context);
      context.changed();
      return page.resourceVersion;
    },
    event({ type, object }) {
      if (type === 'DELETED') state.connections.delete(object.metadata.name);
      // The one watch that asks for whole objects.
      else state.setConnection(object as KubeObject);
      forward(wanted, object, context);
      context.changed();
    },
  };
}

/** Bindings say which Secrets and ConfigMaps are watched. */
function bindings(wanted: WantedWatch, kind: AnyBinding['kind'], context: SourceContext): Behaviour {
  const { state } = context;
  return {
    async list(client, signal) {
      const page = await client.listAll(wanted.ref, { signal });
      if (signal.aborted) return page.resourceVersion;
      state.replaceBindings(kind, page.items);
      for (const object of page.items) forward(wanted, object, context);
      context.changed();
      return page.resourceVersion;
    },
    event({ type, object }) {
      const changed = state.noteBinding(kind, object as KubeObject, type === 'DELETED');
      forward(wanted, object, context);
      if (changed) context.changed();
    },
  };
}

/**
 * Selected Secrets and ConfigMaps, and our copies of them: their bindings look at both sides. After a gap each of these looks
 * once. A copy that appears was made by such a look.
 */
function related(wanted: WantedWatch, { copies }: Source<'related'>, context: SourceContext): Behaviour {
  return {
    list: startOf(wanted),
    event({ type, object }) {
      if (!copies || type !== 'ADDED') forward(wanted, object, context);
    },
    stands({ gap, resourceVersion, connects }) {
      if (!gap) return;
      const change = `related|${wanted.fingerprint}|${resourceVersion}|${connects}`;
      for (const request of requestsFor(wanted.source, { name: '' }, context.mapping)) {
        context.put(outgoing(request, change));
      }
    },
  };
}

function crds(wanted: WantedWatch, context: SourceContext): Behaviour {
  const { state } = context;
  return {
    async list(client, signal) {
      const page = await client.listAllMetadata(wanted.ref, { ...selectors(wanted), signal });
      if (signal.aborted) return page.resourceVersion;
      forwardGone(wanted, state.replaceCrds(page.items), page.resourceVersion, context);
      for (const object of page.items) forward(wanted, object, context);
      context.changed();
      return page.resourceVersion;
    },
    event({ type, object }) {
      if (type === 'DELETED') state.crds.delete(object.metadata.name);
      else state.setCrd(object);
      forward(wanted, object, context);
      context.changed();
    },
  };
}

/** Many objects: after a gap none is listed but those in conflict; a sweep compares the rest. */
function instances(wanted: WantedWatch, { api }: Source<'instances'>, context: SourceContext): Behaviour {
  const { state } = context;
  const before = (): boolean => state.conflictingApis.has(api);
  return {
    async list(client, signal) {
      // One snapshot: what happens to these, and to all others, after its version is repeated by the stream.
      const conflicting = await client.listAllMetadata(wanted.ref, { labelSelector: conflictingObjects, signal });
      const { resourceVersion } = conflicting;
      if (signal.aborted) return resourceVersion;
      const had = before();
      state.replaceConflicts(api, conflicting.items);
      if (had !== before()) context.changed();
      return resourceVersion;
    },
    event({ type, object }) {
      const had = before();
      state.noteConflict(api, object, type === 'DELETED');
      forward(wanted, object, context);
      if (had !== before()) context.changed();
    },
    stands: (standing) => context.standing(api, 'instances', standing),
    lost: () => context.standing(api, 'instances', undefined),
  };
}

function copies(wanted: WantedWatch, { api }: Source<'copies'>, context: SourceContext): Behaviour {
  return {
    list: startOf(wanted),
    event: ({ object }) => forward(wanted, object, context),
    stands: (standing) => context.standing(api, 'copies', standing),
    lost: () => context.standing(api, 'copies', undefined),
  };
}

/** What is not ours, while something of ours is in its way: a conflict ends the moment its blocker goes. */
function foreign(wanted: WantedWatch, { api }: Source<'foreign'>, context: SourceContext): Behaviour {
  return {
    list: startOf(wanted),
    event: ({ object }) => forward(wanted, object, context),
    stands({ gap, resourceVersion, connects }) {
      if (!gap) return;
      // The blocker may have gone before this stream stood.
      const change = `foreign|${wanted.fingerprint}|${resourceVersion}|${connects}`;
      for (const key of context.state.conflictingKeys(api)) {
        for (const request of requestsFor({ type: 'instances', api }, key, context.mapping)) {
          context.put(outgoing(request, change));
        }
      }
    },
  };
}

const startOf =
  ({ ref, namespace }: WantedWatch) =>
  async (client: KubeClient, signal: AbortSignal): Promise<string> =>
    (await client.listMetadata(ref, { namespace, limit: 1, signal })).resourceVersion;

function forward({ source }: WantedWatch, object: MetaObject, context: SourceContext): void {
  for (const message of messagesFor(source, object, context.mapping)) context.put(message);
}

/** Objects that went during a gap showed no event of their own. */
function forwardGone(
  { source }: WantedWatch,
  names: readonly string[],
  resourceVersion: string,
  context: SourceContext,
): void {
  for (const name of names) {
    const change = `gone|${resourceVersion}`;
    for (const request of requestsFor(source, { name }, context.mapping)) context.put(outgoing(request, change));
  }
}

const selectors = ({ namespace, labelSelector, fieldSelector }: WantedWatch) => ({
  namespace,
  labelSelector,
  fieldSelector,
});
