import type { KubeClient, ListOptions, ListPage, WatchEvent, WatchOptions } from '../../../lib/kube/types.ts';
import { apiName, type KubeObject, type ResourceRef } from '../../../lib/model/api.ts';
import { KbindError } from '../../../lib/model/errors.ts';

/** One watch that a forwarder holds, driven by the test. */
export class ScriptedStream {
  readonly api: string;
  readonly options: WatchOptions;
  readonly #events: WatchEvent[] = [];
  #wake: () => void = () => undefined;
  #end: { readonly error?: KbindError } | undefined;

  constructor(api: string, options: WatchOptions) {
    this.api = api;
    this.options = options;
    options.signal?.addEventListener('abort', () => this.fail(new KbindError('aborted', 'aborted')));
  }

  get open(): boolean {
    return this.#end === undefined;
  }

  push(event: WatchEvent): void {
    this.#events.push(event);
    this.#wake();
  }

  /** The server ends the stream as servers do. */
  finish(): void {
    this.#end ??= {};
    this.#wake();
  }

  fail(error: KbindError): void {
    this.#end ??= { error };
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchEvent> {
    for (;;) {
      for (let event = this.#events.shift(); event !== undefined; event = this.#events.shift()) yield event;
      if (this.#end?.error !== undefined) throw this.#end.error;
      if (this.#end !== undefined) return;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

const unused = (): never => {
  throw new Error('a forwarder does not do this');
};

/** The reads of an API server that a forwarder needs, answered from memory; a watch sends what the test pushes. */
export class ScriptedCluster {
  resourceVersion = 100;
  readonly objects = new Map<string, KubeObject[]>();
  readonly streams: ScriptedStream[] = [];
  readonly requests: string[] = [];
  /** While set, every watch of that API fails with it. */
  readonly refusals = new Map<string, KbindError>();
  readonly client: KubeClient;

  constructor(host: string) {
    const page = (ref: ResourceRef, options: ListOptions = {}) => Promise.resolve(this.#page(ref, options));
    this.client = {
      host,
      serverDate: () => undefined,
      list: page,
      listAll: page,
      listMetadata: page,
      listAllMetadata: page,
      watch: (ref, options) => this.#watch(ref, options),
      get: unused,
      find: unused,
      getPath: unused,
      create: unused,
      apply: unused,
      update: unused,
      patch: unused,
      delete: unused,
    };
  }

  /** The watches of an API that stand. */
  open(api: string, selector?: string): ScriptedStream[] {
    return this.streams.filter(
      (stream) =>
        stream.api === api && stream.open && (selector === undefined || stream.options.labelSelector === selector),
    );
  }

  #page(ref: ResourceRef, options: ListOptions): ListPage<KubeObject> {
    const api = apiName(ref);
    this.requests.push(`list ${api}`);
    const items = (this.objects.get(api) ?? []).filter(({ metadata }) => {
      const [label, value] = options.labelSelector?.split('=') ?? [];
      return label === undefined || metadata.labels?.[label] === value;
    });
    return { items, resourceVersion: String(this.resourceVersion), sentAt: { wall: 0, mono: 0 }, bytes: 0 };
  }

  async *#watch(ref: ResourceRef, options: WatchOptions): AsyncGenerator<WatchEvent> {
    const api = apiName(ref);
    this.requests.push(`watch ${api}`);
    const refusal = this.refusals.get(api);
    if (refusal !== undefined) throw refusal;
    const stream = new ScriptedStream(api, options);
    this.streams.push(stream);
    options.onOpen?.();
    yield* stream;
  }
}
