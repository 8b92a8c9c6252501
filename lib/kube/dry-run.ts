import type { ObjectKey, ResourceRef } from '../model/api.ts';
import { apiName, keyText } from '../model/api.ts';
import type { KubeClient, WriteOptions } from './types.ts';

/** What a dry run stopped at: the first write that a reconcile would have made. No error of anything. */
export class WouldWrite extends Error {
  override readonly name = 'WouldWrite';
  readonly verb: 'create' | 'apply' | 'update' | 'patch' | 'delete';
  /** `<plural>.<group>`. */
  readonly api: string;
  readonly key: ObjectKey;

  constructor(verb: WouldWrite['verb'], ref: ResourceRef, { namespace, name }: ObjectKey) {
    const key = namespace === undefined ? { name } : { namespace, name };
    super(`would ${verb} ${apiName(ref)} ${keyText(key)}`);
    this.verb = verb;
    this.api = apiName(ref);
    this.key = key;
  }
}

/**
 * A client that reads and does not write: the first write rejects with {@link WouldWrite} and nothing is sent. What is
 * asked with `dryRun` is a request, not a write, and goes through.
 */
export function stopAtFirstWrite(client: KubeClient): KubeClient {
  const isWrite = (options: WriteOptions | undefined): boolean => options?.dryRun !== true;
  return {
    ...client,
    create: async (ref, object, options) => {
      const { namespace, name = object.metadata.generateName ?? '' } = object.metadata;
      if (isWrite(options)) throw new WouldWrite('create', ref, { namespace, name });
      return client.create(ref, object, options);
    },
    apply: async (ref, object, read, options) => {
      const { namespace, name = '' } = object.metadata;
      if (isWrite(options)) throw new WouldWrite('apply', ref, { namespace, name });
      return client.apply(ref, object, read, options);
    },
    update: async (ref, object, options) => {
      if (isWrite(options)) throw new WouldWrite('update', ref, object.metadata);
      return client.update(ref, object, options);
    },
    patch: async (ref, key, change, options) => {
      if (isWrite(options)) throw new WouldWrite('patch', ref, key);
      return client.patch(ref, key, change, options);
    },
    delete: async (ref, key, read, options) => {
      if (isWrite(options)) throw new WouldWrite('delete', ref, key);
      return client.delete(ref, key, read, options);
    },
  };
}
