import type { ResourceRef } from '../model/api.ts';
import type { KubeClient, WriteOptions } from '../kube/types.ts';

/** One request that is about to leave. */
export interface Call {
  readonly kind: 'read' | 'write';
  /** Absent for paths that are no resource. */
  readonly ref?: ResourceRef;
  /** A write that is only tried: a request, not a write. */
  readonly dryRun?: boolean;
}

/** Stands between a caller and its request: sends it, and sees its answer or error. */
export type Intercept = <T>(call: Call, send: () => Promise<T>) => Promise<T>;

/** A client whose every request passes through `intercept`. Watches pass by: they end by themselves. */
export function interceptClient(client: KubeClient, intercept: Intercept): KubeClient {
  const read = <T>(ref: ResourceRef, send: () => Promise<T>): Promise<T> => intercept({ kind: 'read', ref }, send);
  const write = <T>(ref: ResourceRef, options: WriteOptions | undefined, send: () => Promise<T>): Promise<T> =>
    intercept({ kind: 'write', ref, dryRun: options?.dryRun ?? false }, send);
  return {
    host: client.host,
    serverDate: () => client.serverDate(),
    get: (ref, key, options) => read(ref, () => client.get(ref, key, options)),
    find: (ref, key, options) => read(ref, () => client.find(ref, key, options)),
    list: (ref, options) => read(ref, () => client.list(ref, options)),
    listMetadata: (ref, options) => read(ref, () => client.listMetadata(ref, options)),
    listAll: (ref, options) => read(ref, () => client.listAll(ref, options)),
    listAllMetadata: (ref, options) => read(ref, () => client.listAllMetadata(ref, options)),
    watch: (ref, options) => client.watch(ref, options),
    getPath: (path, options) => intercept({ kind: 'read' }, () => client.getPath(path, options)),
    create: (ref, object, options) => write(ref, options, () => client.create(ref, object, options)),
    apply: (ref, object, version, options) => write(ref, options, () => client.apply(ref, object, version, options)),
    update: (ref, object, options) => write(ref, options, () => client.update(ref, object, options)),
    patch: (ref, key, change, options) => write(ref, options, () => client.patch(ref, key, change, options)),
    delete: (ref, key, version, options) => write(ref, options, () => client.delete(ref, key, version, options)),
  };
}
