/**
 * What a cell costs a month, from what it does. Amounts of work are those of design.md's budgets and of the code's schedules;
 * prices are list prices of eu-central-1 without free tiers, in dollars. Pure: scripts/cost.ts prints it.
 */

export interface Fleet {
  readonly clusters: number;
  /** Bound APIs of a cluster. */
  readonly apis: number;
  /** Objects of one bound API in one cluster. */
  readonly objects: number;
  /** Changes of specs that people make in one cluster in an hour; each is answered by one status. */
  readonly changesPerHour: number;
}

export interface Prices {
  /** Per million requests. */
  readonly sqsStandard: number;
  readonly sqsFifo: number;
  readonly lambdaRequests: number;
  readonly dynamoReads: number;
  readonly dynamoWrites: number;
  /** Per GB-second, ARM. */
  readonly lambdaGbSecond: number;
  /** Per GB. */
  readonly logs: number;
  /** A month each. */
  readonly metric: number;
  readonly alarm: number;
  readonly dashboard: number;
  /** A month of one vCPU and of one GiB on demand (m7g.large, by its share), and of an EKS Fargate pod of the smallest size. */
  readonly vcpu: number;
  readonly gib: number;
  readonly fargatePod: number;
}

export const PRICES: Prices = {
  sqsStandard: 0.4,
  sqsFifo: 0.5,
  lambdaRequests: 0.2,
  dynamoReads: 0.1525,
  dynamoWrites: 0.7625,
  lambdaGbSecond: 0.0000133334,
  logs: 0.63,
  metric: 0.3,
  alarm: 0.1,
  dashboard: 3,
  vcpu: 27,
  gib: 3.5,
  fargatePod: 11,
};

const MINUTES = 30 * 24 * 60;
const HOURS = 30 * 24;
const MILLION = 1_000_000;

/** What the code does. */
export const WORK = {
  refreshesPerMinute: 2,
  sweepsPerHour: 6,
  heartbeatsPerMinute: 1,
  /** Of one spec change and its status: the object, our copy, the copy's status, the object's status. */
  messagesPerChange: 4,
  /** Send, receive, delete. A batch would share them: this is the worst case. */
  requestsPerMessage: 3,
  pageSize: 500,
  /** Lambda's pollers of one quiet queue: five, each asking once in 20 s. */
  pollsPerMinuteAndQueue: 15,
  queues: 3,
  functions: 6,
  alarms: 37,
  /** Series: the names without dimensions and the usual values of those with some. */
  series: 60,
  reconcileSeconds: 0.25,
  refreshSeconds: 0.5,
  sweepSecondsPerPage: 0.4,
  memoryGb: 0.5,
  logBytesPerMessage: 1_200,
  logBytesPerInvocation: 600,
} as const;

/** What happens in a month. */
export interface Amounts {
  readonly messages: number;
  readonly sqsStandard: number;
  readonly sqsFifo: number;
  readonly invocations: number;
  readonly gbSeconds: number;
  readonly dynamoReads: number;
  readonly dynamoWrites: number;
  readonly logGb: number;
  readonly kubeRequests: number;
}

export function amountsOf(fleet: Fleet): Amounts {
  const { clusters, apis, objects, changesPerHour } = fleet;
  const refreshes = clusters * WORK.refreshesPerMinute * MINUTES;
  const sweeps = clusters * WORK.sweepsPerHour * HOURS;
  const heartbeats = clusters * WORK.heartbeatsPerMinute * MINUTES;
  const keys = clusters * changesPerHour * HOURS * WORK.messagesPerChange;
  const pages = 2 * apis * Math.max(1, Math.ceil(objects / WORK.pageSize));
  const messages = refreshes + sweeps + heartbeats + keys;
  const polls = WORK.pollsPerMinuteAndQueue * MINUTES;
  const invocations = messages + MINUTES;
  return {
    messages,
    sqsStandard: (refreshes + sweeps) * WORK.requestsPerMessage + polls,
    sqsFifo: (heartbeats + keys) * WORK.requestsPerMessage + polls * (WORK.queues - 1),
    invocations,
    gbSeconds:
      WORK.memoryGb *
      (keys * WORK.reconcileSeconds +
        refreshes * WORK.refreshSeconds +
        sweeps * (pages * WORK.sweepSecondsPerPage + WORK.refreshSeconds) +
        heartbeats * 0.05 +
        MINUTES),
    // Entries are believed for five seconds: at worst each message asks. The tick lists 20 entries or so per read unit.
    dynamoReads: messages + (MINUTES * clusters) / 20,
    dynamoWrites: heartbeats + sweeps,
    logGb: (messages * WORK.logBytesPerMessage + invocations * WORK.logBytesPerInvocation) / 1e9,
    kubeRequests: refreshes * (12 + 2 * apis) + sweeps * (pages + 8) + keys * 2.5,
  };
}

export interface Bill {
  readonly lines: readonly { readonly what: string; readonly dollars: number }[];
  readonly total: number;
  /** The same fleet with one controller in each cluster: its share of a node, and as a Fargate pod. */
  readonly podsOnNodes: number;
  readonly podsOnFargate: number;
}

/** What the Go konnector's chart asks for, by reference-figures: 100m and 256 Mi. Two replicas are not usual. */
const POD = { vcpu: 0.1, gib: 0.25 };

export function billOf(fleet: Fleet, prices: Prices = PRICES): Bill {
  const amounts = amountsOf(fleet);
  const per = (count: number, price: number): number => (count / MILLION) * price;
  const lines = [
    { what: 'SQS', dollars: per(amounts.sqsStandard, prices.sqsStandard) + per(amounts.sqsFifo, prices.sqsFifo) },
    {
      what: 'Lambda',
      dollars: per(amounts.invocations, prices.lambdaRequests) + amounts.gbSeconds * prices.lambdaGbSecond,
    },
    {
      what: 'DynamoDB',
      dollars: per(amounts.dynamoReads, prices.dynamoReads) + per(amounts.dynamoWrites, prices.dynamoWrites),
    },
    { what: 'logs', dollars: amounts.logGb * prices.logs },
    {
      what: 'metrics, alarms, dashboard',
      dollars: WORK.series * prices.metric + WORK.alarms * prices.alarm + prices.dashboard,
    },
  ];
  return {
    lines,
    total: lines.reduce((sum, { dollars }) => sum + dollars, 0),
    podsOnNodes: fleet.clusters * (POD.vcpu * prices.vcpu + POD.gib * prices.gib),
    podsOnFargate: fleet.clusters * prices.fargatePod,
  };
}

/** The forwarder that this product needs in each cluster: what its chart asks for, two replicas. */
export const forwarderShare = (fleet: Fleet, prices: Prices = PRICES): number =>
  fleet.clusters * 2 * (0.02 * prices.vcpu + 0.125 * prices.gib);
