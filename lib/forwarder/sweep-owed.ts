import { createHash } from 'node:crypto';
import type { SweepRequest } from '../model/request.ts';
import type { Standing } from './watcher.ts';

/** The sides of one API whose watches a sweep waits for. */
export type SweptSide = 'instances' | 'copies';

interface ApiWatches {
  readonly standing: Map<SweptSide, Standing>;
  /** Something may have been missed since the last sweep. */
  owed: boolean;
}

/**
 * One sweep for each gap: owed from the moment that a watch of an API stands after a list, posted once every watch that the
 * plan wants stands (design.md, rule 12). Posted sooner it would miss what happens between it and the late watch.
 */
export class SweepsOwed {
  readonly #cluster: string;
  readonly #apis = new Map<string, ApiWatches>();

  constructor(cluster: string) {
    this.#cluster = cluster;
  }

  stands(api: string, side: SweptSide, standing: Standing): void {
    const watches = this.#apis.get(api) ?? { standing: new Map<SweptSide, Standing>(), owed: false };
    watches.standing.set(side, standing);
    watches.owed ||= standing.gap;
    this.#apis.set(api, watches);
  }

  lost(api: string, side: SweptSide): void {
    this.#apis.get(api)?.standing.delete(side);
  }

  forget(api: string): void {
    this.#apis.delete(api);
  }

  /**
   * The sweep to post now, if it is due; the same one is not given out twice.
   * @param plan text that changes with the plan
   */
  due(api: string, wanted: readonly SweptSide[], plan: string): SweepRequest | undefined {
    const watches = this.#apis.get(api);
    if (watches === undefined || !watches.owed || wanted.length === 0) return undefined;
    const standing = wanted.map((side) => watches.standing.get(side));
    if (standing.includes(undefined)) return undefined;
    watches.owed = false;
    const starts = standing.map((start) => `${start?.resourceVersion ?? ''}#${start?.connects ?? 0}`);
    return {
      v: 1,
      type: 'sweep',
      cluster: this.#cluster,
      apis: [api],
      id: ['forwarder', api, shortHash(plan), ...starts].join('|'),
      retry: true,
    };
  }
}

const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);
