import pc from 'picocolors';
import { keyText } from '../model/api.ts';
import { controllers, type Controller, type ReconcileRequest, type Request } from '../model/request.ts';
import { parseMessage } from '../queue/codec.ts';
import type { Delivery } from './event-source.ts';

/** How the kinds of work are called by people. */
const KIND_WORDS = {
  connection: 'Connection',
  clusterbinding: 'ClusterBinding',
  binding: 'Binding',
  crd: 'synced API',
  instance: '',
} as const satisfies Record<Controller, string>;

/** Of one kind, that many are named; more are counted. */
const MOST_NAMED = 3;

/** What a message asks for, or undefined for one that nobody can read. */
export function requestIn(body: string): Request | undefined {
  try {
    return parseMessage(body);
  } catch {
    // The handler makes a dead letter of it; here it only cannot be told in words.
    return undefined;
  }
}

/** `widgets.example.org default/a`, `Connection demo`. */
export function subjectOf(request: ReconcileRequest): string {
  return `${KIND_WORDS[request.controller] || (request.api ?? '')} ${keyText(request)}`;
}

/** Tells what the functions do, in lines for people; what belongs together and comes together is one line. */
export class Narrator {
  readonly #print: (line: string) => void;
  /** Cluster names by UID. */
  readonly #clusters = new Map<string, string>();
  readonly #handled = new Map<string, Map<string, ReconcileRequest>>();

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  connected(cluster: string, uid: string): void {
    this.#clusters.set(uid, cluster);
    this.#print(`${pc.green('connected')}  ${cluster} answers (cluster ${uid}); watching it`);
  }

  unreachable(cluster: string, why: string): void {
    this.#print(`${pc.yellow('waiting')}    ${cluster} does not answer, trying again: ${why}`);
  }

  deadLetters(count: number): void {
    this.#print(`${pc.red('given up')}   ${count} dead letter(s) in all: work that failed for good, kept for replay`);
  }

  /** Notes a delivered batch; {@link flush} tells of it. */
  delivered(delivery: Delivery): void {
    for (const { MessageId: id = '', Body: body = '' } of delivery.messages) {
      const request = requestIn(body);
      if (request?.type !== 'reconcile' || delivery.failed.has(id)) continue;
      const kind = `${request.cluster} ${request.controller} ${request.api ?? ''}`;
      const keys = this.#handled.get(kind) ?? new Map<string, ReconcileRequest>();
      keys.set(keyText(request), request);
      this.#handled.set(kind, keys);
    }
    if (delivery.error !== undefined)
      this.#print(`${pc.red('failed')}     ${delivery.functionName} broke off; its messages come back`);
  }

  /** Prints a line for each kind of work since the last time. */
  flush(): void {
    const kinds = [...this.#handled.values()].toSorted((one, other) => orderOf(one) - orderOf(other));
    this.#handled.clear();
    for (const keys of kinds) {
      const [first] = keys.values();
      if (first === undefined) continue;
      const cluster = this.#clusters.get(first.cluster) ?? first.cluster;
      this.#print(`${pc.cyan('looked at')}  ${cluster}: ${summary([...keys.values()], first)}`);
    }
  }
}

function orderOf(keys: ReadonlyMap<string, ReconcileRequest>): number {
  const [first] = keys.values();
  return first === undefined ? controllers.length : controllers.indexOf(first.controller);
}

function summary(requests: readonly ReconcileRequest[], first: ReconcileRequest): string {
  const kind = KIND_WORDS[first.controller] || (first.api ?? '');
  const named = requests.slice(0, MOST_NAMED).map((request) => keyText(request));
  const more = requests.length - named.length;
  return `${kind} ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
