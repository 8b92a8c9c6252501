import type { KubeObject } from '../../lib/model/api.ts';
import { keyText, type ResourceRef } from '../../lib/model/api.ts';
import type { KubeClient } from '../../lib/kube/types.ts';

type Fits = (object: KubeObject | undefined) => boolean;

/** What a watch of somebody who looks on has shown of a collection, and when: a bench polls nothing. */
export class Watched {
  readonly #abort = new AbortController();
  readonly #objects = new Map<string, KubeObject>();
  readonly #waiting = new Map<string, { fits: Fits; seen: (at: number) => void }>();
  readonly #running: Promise<void>;
  /** Called for each object that is new or changed. */
  onObject: (object: KubeObject) => void = () => undefined;

  private constructor(client: KubeClient, ref: ResourceRef, resourceVersion: string) {
    this.#running = this.#run(client, ref, resourceVersion);
  }

  static async start(client: KubeClient, ref: ResourceRef): Promise<Watched> {
    const { items, resourceVersion } = await client.listAll(ref);
    const watched = new Watched(client, ref, resourceVersion);
    for (const object of items) watched.#take(object, false);
    return watched;
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): KubeObject | undefined {
    return this.#objects.get(key);
  }

  /** Resolves with `performance.now()` of the moment when the object of that key was seen to fit; undefined is gone. */
  seen(key: string, fits: Fits): Promise<number> {
    if (fits(this.#objects.get(key))) return Promise.resolve(performance.now());
    return new Promise((resolve) => this.#waiting.set(key, { fits, seen: resolve }));
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#running;
  }

  #take(object: KubeObject, gone: boolean): void {
    const key = keyText(object.metadata);
    if (gone) this.#objects.delete(key);
    else this.#objects.set(key, object);
    const waiting = this.#waiting.get(key);
    if (waiting?.fits(this.#objects.get(key)) === true) {
      this.#waiting.delete(key);
      waiting.seen(performance.now());
    }
    if (!gone) this.onObject(object);
  }

  async #run(client: KubeClient, ref: ResourceRef, from: string): Promise<void> {
    let resourceVersion = from;
    while (!this.#abort.signal.aborted) {
      try {
        resourceVersion = await this.#follow(client, ref, resourceVersion);
      } catch (error) {
        // A CRD that goes takes its watch with it: what was waited for was seen before.
        if (!this.#abort.signal.aborted) this.#abort.abort(error);
      }
    }
  }

  /** One stream, to its end. */
  async #follow(client: KubeClient, ref: ResourceRef, from: string): Promise<string> {
    let resourceVersion = from;
    const { signal } = this.#abort;
    for await (const event of client.watch(ref, { resourceVersion, signal, metadataOnly: false })) {
      resourceVersion = event.type === 'BOOKMARK' ? event.resourceVersion : event.object.metadata.resourceVersion;
      if (event.type !== 'BOOKMARK') this.#take(event.object as KubeObject, event.type === 'DELETED');
    }
    return resourceVersion;
  }
}
