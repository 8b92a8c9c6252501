import { keyText } from '../../lib/model/api.ts';
import { startFleetTable } from '../support/aws/table.ts';
import { BenchCell, widgets, type Consumer } from '../support/bench/cell.ts';
import { registerClusters, simulateFleet } from '../support/bench/fleet.ts';
import { simulateIdle } from '../support/bench/idle.ts';
import { createInstance, forEach, keyAt, range } from '../support/bench/instances.ts';
import { API } from './bench.ts';
import { percentile, resultOf, type Result } from './result.ts';
import { Watched } from './watched.ts';

const QUIET_CLUSTERS = 9;
const CALM_SINGLES = 6;
/** Room for the names of one cluster. */
const SINGLES_AT_MOST = 10_000;
/** Instances of each cluster that are made at once before anything is timed. */
const WARMING = 10;

/**
 * One noisy cluster beside nine quiet ones: what the quiet ones' lag becomes. Embedded API servers, because ten real ones are
 * no small machine's, in processes of their own, because they are not what is measured.
 */
export async function storm(n: number): Promise<Result> {
  const cell = await BenchCell.start({ server: 'apart', consumers: QUIET_CLUSTERS + 1 });
  const watched = await Watched.start(cell.provider.hands, widgets);
  try {
    for (const consumer of cell.consumers) {
      await cell.startForwarder(consumer);
      await cell.connect(consumer);
      await cell.bind('widgets', [API], consumer);
    }
    for (const consumer of cell.consumers) await cell.untilBound('widgets', consumer);
    await cell.settled({ quietMs: 700 });
    const [noisy, ...quiet] = cell.consumers;
    if (noisy === undefined) throw new Error('a storm needs a noisy cluster');
    /** In each quiet cluster one object after the other, for as long as that is to go on. */
    const singles = async (from: number, goOn: (count: number) => boolean): Promise<number[]> => {
      const lags: number[] = [];
      const inOne = async (consumer: Consumer, position: number): Promise<void> => {
        for (let count = 0; goOn(count); count += 1) {
          const index = from + position * SINGLES_AT_MOST + count;
          const started = performance.now();
          await createInstance(consumer, index);
          lags.push((await watched.seen(keyText(keyAt(index)), (copy) => copy !== undefined)) - started);
        }
      };
      await Promise.all(quiet.map(inOne));
      return lags;
    };
    // Every container has worked for every cluster before: cold starts are another matter.
    const warming = cell.consumers.map((consumer, position) =>
      forEach(range(WARMING, 300_000 + position * WARMING), (index) => createInstance(consumer, index)),
    );
    await Promise.all(warming);
    await cell.settled();
    const calm = await singles(100_000, (count) => count < CALM_SINGLES);
    let stormy: number[] = [];
    const measured = await cell.measure(async () => {
      let raging = true;
      const noise = forEach(
        range(n),
        async (index) => {
          await createInstance(noisy, index);
          await watched.seen(keyText(keyAt(index)), (copy) => copy !== undefined);
        },
        n,
      ).finally(() => (raging = false));
      stormy = await singles(200_000, () => raging);
      await noise;
      await cell.settled();
    }, noisy);
    return resultOf({ scenario: 'storm', server: 'apart', n }, measured, {
      lags: stormy,
      more: {
        singles: stormy.length,
        calmP50: Math.round(percentile(calm, 0.5)),
        calmP99: Math.round(percentile(calm, 0.99)),
        timesCalmP99: Math.round((percentile(stormy, 0.99) / percentile(calm, 0.99)) * 10) / 10,
      },
    });
  } finally {
    await watched.stop();
    await cell.stop();
  }
}

/** Ten minutes of an idle cluster on a virtual clock, requests per minute. */
export async function idle(n: number): Promise<Result> {
  const from = performance.now();
  const counted = await simulateIdle({ bindings: 3, instances: n, minutes: 10 });
  const round = (value: number): number => Math.round(value * 10) / 10;
  return {
    scenario: 'idle, 10 minutes',
    server: 'virtual',
    n,
    requests: counted.requests,
    writes: counted.writes,
    forwarderRequests: 0,
    requestsPerObject: round(counted.requests / n),
    writesPerObject: round(counted.writes / n),
    messages: counted.messages,
    messagesSent: counted.messages,
    messagesPerObject: round(counted.messages / n),
    invocations: counted.invocations,
    deadLetters: 0,
    ms: Math.round(performance.now() - from),
    processes: [],
    by: counted.byRequest,
    more: { requestsPerMinute: round(counted.requests / 10), writesPerMinute: round(counted.writes / 10) },
  };
}

/** Ten minutes of a fleet of that many clusters, a tenth with an edit a minute, on a virtual clock: what one costs an hour. */
export async function fleet(n: number): Promise<Result> {
  const from = performance.now();
  const table = await startFleetTable();
  await registerClusters(table.table, n);
  const items = (await table.table.scan()).toSorted((a, b) => ((a['id']?.S ?? '') < (b['id']?.S ?? '') ? -1 : 1));
  await table.stop();
  const {
    idle: quiet,
    busy,
    tableRequests,
    refreshesBySecond,
    deadLetters,
  } = await simulateFleet({
    items,
    busy: Math.ceil(n / 10),
    minutes: 10,
  });
  const named = (of: string, share: object): [string, number][] =>
    Object.entries(share).map(([name, value]) => [`${of} ${name}`, value as number]);
  return {
    scenario: 'fleet, an hour of an idle cluster',
    server: 'virtual',
    n,
    requests: quiet.requests,
    writes: 0,
    forwarderRequests: 0,
    requestsPerObject: 0,
    writesPerObject: 0,
    messages: quiet.messages,
    messagesSent: quiet.messages,
    messagesPerObject: 0,
    invocations: quiet.invocations,
    deadLetters,
    ms: Math.round(performance.now() - from),
    processes: [],
    by: Object.fromEntries(refreshesBySecond.map((count, second) => [`refreshes in second ${second}`, count])),
    more: { ...Object.fromEntries([...named('idle', quiet), ...named('busy', busy)]), tableRequests },
  };
}
