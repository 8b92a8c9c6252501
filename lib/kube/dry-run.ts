import type { ObjectKey, ResourceRef } from '../model/api.ts';
import { apiName, keyText } from '../model/api.ts';
import type { KubeObject } from '../model/api.ts';
import type { KubeClient, WriteOptions } from './types.ts';

/** An object before and after a write that was tried with `dryRun=All`; absent where there is none. */
export interface Preview {
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
}

/** What a dry run stopped at: the first write that a reconcile would have made. No error of anything. */
export class WouldWrite extends Error {
  override readonly name = 'WouldWrite';
  readonly verb: 'create' | 'apply' | 'update' | 'patch' | 'delete';
  /** `<plural>.<group>`. */
  readonly api: string;
  readonly key: ObjectKey;
  /** `host:port` of the server that it would have gone to. */
  readonly host: string;
  /** Asks the server what would come of it; nothing is written. Throws what the write would. */
  readonly preview: () => Promise<Preview>;

  constructor(
    verb: WouldWrite['verb'],
    { ref, client }: { readonly ref: ResourceRef; readonly client: KubeClient },
    { namespace, name }: ObjectKey,
    tryIt: () => Promise<KubeObject | undefined>,
  ) {
    const key = namespace === undefined ? { name } : { namespace, name };
    super(`would ${verb} ${apiName(ref)} ${keyText(key)}`);
    this.verb = verb;
    this.api = apiName(ref);
    this.key = key;
    this.host = client.host;
    this.preview = async () => ({
      before: name === '' ? undefined : await client.find(ref, key),
      after: await tryIt(),
    });
  }
}

/** As it was meant, but only tried: what it rested on may be old by then, and its time up. */
const tried = <T extends WriteOptions>(options: T | undefined): T =>
  ({ ...options, dryRun: true, belief: undefined, signal: undefined }) as T;

const isWrite = (options: WriteOptions | undefined): boolean => options?.dryRun !== true;

/**
 * A client that reads and does not write: the first write rejects with {@link WouldWrite} and nothing is sent. What is
 * asked with `dryRun` is a request, not a write, and goes through.
 */
export function stopAtFirstWrite(client: KubeClient): KubeClient {
  return {
    ...client,
    create: async (ref, object, options) => {
      const { namespace, name = object.metadata.generateName ?? '' } = object.metadata;
      if (!isWrite(options)) return client.create(ref, object, options);
      const key = { namespace, name };
      throw new WouldWrite('create', { ref, client }, key, () => client.create(ref, object, tried(options)));
    },
    apply: async (ref, object, read, options) => {
      const { namespace, name = '' } = object.metadata;
      if (!isWrite(options)) return client.apply(ref, object, read, options);
      const key = { namespace, name };
      throw new WouldWrite('apply', { ref, client }, key, () => client.apply(ref, object, read, tried(options)));
    },
    update: async (ref, object, options) => {
      if (!isWrite(options)) return client.update(ref, object, options);
      throw new WouldWrite('update', { ref, client }, object.metadata, () =>
        client.update(ref, object, tried(options)),
      );
    },
    patch: async (ref, key, change, options) => {
      if (!isWrite(options)) return client.patch(ref, key, change, options);
      throw new WouldWrite('patch', { ref, client }, key, () => client.patch(ref, key, change, tried(options)));
    },
    delete: async (ref, key, read, options) => {
      if (!isWrite(options)) return client.delete(ref, key, read, options);
      throw new WouldWrite('delete', { ref, client }, key, () => Promise.resolve(undefined));
    },
  };
}
