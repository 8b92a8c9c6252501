import { keyText, type KubeObject, type ObjectKey } from '../../lib/model/api.ts';
import { ensureNamespace } from '../../lib/reconcile/ensure-namespace.ts';
import { apiName, BenchCell, NAMESPACE, widgets } from '../support/bench/cell.ts';
import { forEach, keyAt, layOut, range } from '../support/bench/instances.ts';
import type { ServerName } from '../support/bench/servers.ts';
import { resultOf, type Result } from './result.ts';
import { Watched } from './watched.ts';

export const API = apiName(widgets);

type Status = { readonly phase?: string } | undefined;
export const phaseOf = (object: KubeObject | undefined): string | undefined => (object?.status as Status)?.phase;
export const sizeOf = (object: KubeObject | undefined): number | undefined =>
  (object?.spec as { size?: number } | undefined)?.size;

/** A bound cell with people who look on at both sides. */
export class Bench {
  readonly cell: BenchCell;
  readonly server: ServerName;
  readonly n: number;
  readonly consumer: Watched;
  readonly provider: Watched;
  #generation = 1;

  private constructor(
    cell: BenchCell,
    options: { server: ServerName; n: number },
    watched: readonly [Watched, Watched],
  ) {
    this.cell = cell;
    this.server = options.server;
    this.n = options.n;
    [this.consumer, this.provider] = watched;
  }

  /** @param options.run starts what watches and reconciles; by default the cell's own forwarder, queues and functions */
  static async start(options: {
    readonly server: ServerName;
    readonly n: number;
    readonly run?: (cell: BenchCell) => Promise<unknown>;
  }): Promise<Bench> {
    const cell = await BenchCell.start({ server: options.server });
    await (options.run ?? ((own) => own.startForwarder()))(cell);
    await cell.connect();
    await cell.bind('widgets', [API]);
    await cell.untilBound('widgets');
    await cell.settled({ quietMs: 500 });
    await ensureNamespace(cell.provider.hands, NAMESPACE, {});
    const watched = await Promise.all([
      Watched.start(cell.consumer.hands, widgets),
      Watched.start(cell.provider.hands, widgets),
    ] as const);
    return new Bench(cell, options, watched);
  }

  async stop(): Promise<void> {
    await Promise.all([this.consumer.stop(), this.provider.stop()]);
    await this.cell.stop();
  }

  /** A number that no object carries yet. */
  next(): number {
    return (this.#generation += 1);
  }

  /** As many synced instances as asked for, by the fast way, with the forwarder running at the end. */
  async atRest(): Promise<void> {
    if (this.consumer.size >= this.n) return;
    const { cell, consumer } = this;
    await cell.stopForwarder();
    await layOut(cell, range(this.n - consumer.size, consumer.size));
    await cell.startForwarder();
    await cell.settled({ quietMs: 700 });
  }

  /** Counts and times a piece of work, from its first act to its last effect; what it costs until all is at rest counts as well. */
  async measure(
    scenario: string,
    work: () => Promise<readonly number[] | undefined>,
    options: { readonly n?: number; readonly more?: () => Record<string, number> } = {},
  ): Promise<Result> {
    let lags: readonly number[] | undefined;
    let ms = 0;
    const measured = await this.cell.measure(async () => {
      const from = performance.now();
      lags = await work();
      ms = performance.now() - from;
      await this.cell.settled({ quietMs: 400 });
    });
    return resultOf({ scenario, server: this.server, n: options.n ?? this.n, ms }, measured, {
      ...(lags === undefined ? {} : { lags }),
      ...(options.more === undefined ? {} : { more: options.more() }),
    });
  }

  /** Acts on each index and waits for what it brings about; answers with the lag of each. */
  async each(
    indices: readonly number[],
    act: (index: number) => Promise<unknown>,
    effect: (key: string) => Promise<number>,
  ): Promise<number[]> {
    const lags: number[] = [];
    const effects: Promise<void>[] = [];
    await forEach(indices, async (index) => {
      const from = performance.now();
      await act(index);
      effects.push(effect(keyText(keyAt(index))).then((at) => void lags.push(Math.max(0, at - from))));
    });
    await Promise.all(effects);
    return lags;
  }
}

/** What somebody who looks on knows of an object: hands need not read it before they write. */
export function seenBy(watched: Watched, key: ObjectKey): KubeObject {
  const object = watched.get(keyText(key));
  if (object === undefined) throw new Error(`nobody has seen ${keyText(key)}`);
  return object;
}
