import type { KubeClient } from '../kube/types.ts';
import type { Providers, Side } from '../reconcile/world.ts';

/** A client whose every request ends when the invocation's time is up, whoever forgets to say so. Watches included. */
export function abortableClient(client: KubeClient, signal: AbortSignal): KubeClient {
  const ending = <T extends { readonly signal?: AbortSignal | undefined }>(options: T | undefined): T => {
    const own = options?.signal;
    const both = own === undefined || own === signal ? signal : AbortSignal.any([own, signal]);
    return { ...options, signal: both } as unknown as T;
  };
  return {
    host: client.host,
    serverDate: () => client.serverDate(),
    get: (ref, key, options) => client.get(ref, key, ending(options)),
    find: (ref, key, options) => client.find(ref, key, ending(options)),
    list: (ref, options) => client.list(ref, ending(options)),
    listMetadata: (ref, options) => client.listMetadata(ref, ending(options)),
    listAll: (ref, options) => client.listAll(ref, ending(options)),
    listAllMetadata: (ref, options) => client.listAllMetadata(ref, ending(options)),
    watch: (ref, options) => client.watch(ref, ending(options)),
    getPath: (path, options) => client.getPath(path, ending(options)),
    create: (ref, object, options) => client.create(ref, object, ending(options)),
    apply: (ref, object, read, options) => client.apply(ref, object, read, ending(options)),
    update: (ref, object, options) => client.update(ref, object, ending(options)),
    patch: (ref, key, change, options) => client.patch(ref, key, change, ending(options)),
    delete: (ref, key, read, options) => client.delete(ref, key, read, ending(options)),
  };
}

/** The same side with such a client. */
export const abortableSide = (side: Side, signal: AbortSignal): Side => ({
  which: side.which,
  uid: side.uid,
  client: abortableClient(side.client, signal),
  confirmIdentity: (maxAgeMs) => side.confirmIdentity(maxAgeMs),
});

/** The same providers, whose sides have such clients. */
export const abortableProviders = (providers: Providers, signal: AbortSignal): Providers => ({
  open: async (connection) => abortableSide(await providers.open(connection), signal),
  probe: async (connection) => {
    const probe = await providers.probe(connection);
    return { ...probe, side: abortableSide(probe.side, signal) };
  },
});
