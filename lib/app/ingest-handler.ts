import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import type { IngestKeyring } from '../fleet/ingest-keys.ts';
import { MAX_BATCH, type ForwarderQueue, type Outgoing, type Sink } from '../forwarder/sink.ts';
import type { Clock } from '../model/clock.ts';
import { KbindError, toKbindError } from '../model/errors.ts';
import type { Logger } from '../model/log.ts';
import { parseIngestBody, RefusedItem, type IngestItem } from '../queue/ingest-codec.ts';
import { queueOf } from '../queue/queues.ts';
import {
  bodyDigest,
  CLUSTER_HEADER,
  DIGEST_HEADER,
  isSignedWith,
  MAX_INGEST_BODY_BYTES,
  sameText,
  SIGNATURE_HEADER,
  TIMESTAMP_HEADER,
  TIMESTAMP_WINDOW_MS,
} from '../queue/signed-request.ts';
import type { Counters } from './counters.ts';

/** Every refusal, its status and what it tells the caller. Nothing of a refused request reaches a queue. */
const refusals = {
  header_missing: [
    400,
    `the headers ${CLUSTER_HEADER}, ${TIMESTAMP_HEADER}, ${DIGEST_HEADER}, ${SIGNATURE_HEADER} are needed`,
  ],
  timestamp_invalid: [400, 'the timestamp is not a number of seconds'],
  timestamp_outside_window: [401, 'the timestamp is more than five minutes away from the time here'],
  cluster_unknown: [401, 'no such cluster in this cell'],
  cluster_without_key: [403, 'this cluster has no ingest key: its forwarder sends to the queues'],
  cluster_removed: [410, 'the cluster was removed from the fleet'],
  signature_mismatch: [401, 'the signature was not made with a key of this cluster'],
  body_altered: [400, 'the body is not the one that was signed'],
  body_too_large: [413, `the body is larger than ${MAX_INGEST_BODY_BYTES} bytes`],
  body_invalid: [400, 'the body cannot be read'],
  message_invalid: [422, 'a message cannot be read'],
  cluster_mismatch: [403, 'a message is about another cluster than the one that signed'],
  keys_unavailable: [503, 'the keys of this cluster cannot be read now'],
  queue_unavailable: [503, 'the queues take nothing now'],
} as const satisfies Record<string, readonly [number, string]>;
export type RefusalCode = keyof typeof refusals;
export const refusalCodes = Object.keys(refusals) as readonly RefusalCode[];

/** A request that is not taken. */
class Refusal extends Error {
  readonly code: RefusalCode;
  readonly index: number | undefined;

  constructor(code: RefusalCode, detail: { readonly words?: string; readonly index?: number } = {}) {
    super(detail.words ?? refusals[code][1]);
    this.code = code;
    this.index = detail.index;
  }
}

export interface IngestParts {
  readonly keyring: IngestKeyring;
  readonly sink: Sink;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Counters;
}

export type IngestHandler = (
  event: APIGatewayProxyEventV2,
  context: { getRemainingTimeInMillis(): number },
) => Promise<APIGatewayProxyStructuredResultV2>;

/** What is left of an invocation's time for the answer, ms. */
const ANSWER_RESERVE_MS = 1_000;

/**
 * Takes signed keys of a cluster whose forwarder has no cloud credentials, and puts them on the queues. 202: all are safe.
 * 207: `failed` names the items to send again. A signed GET is told how many keys of all clusters wait, so that a burst can hold
 * itself back. Everything else took nothing, and says why with a code.
 */
export function createIngestHandler(parts: IngestParts): IngestHandler {
  return async (event, context) => {
    try {
      const { cluster, body } = await authenticate(event, parts);
      const signal = AbortSignal.timeout(Math.max(1, context.getRemainingTimeInMillis() - ANSWER_RESERVE_MS));
      if (event.requestContext.http.method === 'GET') return await tellBacklog(parts, signal);
      const items = itemsOf(cluster, body);
      const failed = await deliver(items, parts, signal);
      return accepted(parts, { cluster, all: items.length, failed });
    } catch (error) {
      if (error instanceof Refusal) return refuse(error, event, parts);
      throw error;
    } finally {
      parts.metrics.flush();
    }
  };
}

/** Who sends, when and with which key, before anything is read of what: in that order, so that strangers cost little. */
async function authenticate(
  event: APIGatewayProxyEventV2,
  parts: IngestParts,
): Promise<{ readonly cluster: string; readonly body: Buffer }> {
  const [cluster, timestamp, digest, signature] = [
    CLUSTER_HEADER,
    TIMESTAMP_HEADER,
    DIGEST_HEADER,
    SIGNATURE_HEADER,
  ].map((name) => header(event, name)) as [string, string, string, string];
  const body = bodyOf(event);
  checkTime(timestamp, parts.clock.now());
  const keys = await keysOf(cluster, parts);
  if (!isSignedWith(keys, { cluster, timestamp, digest }, signature)) throw new Refusal('signature_mismatch');
  if (!sameText(bodyDigest(body), digest)) throw new Refusal('body_altered');
  return { cluster, body };
}

/** Nobody speaks for another cluster. */
function itemsOf(cluster: string, body: Buffer): readonly IngestItem[] {
  const items = readItems(body.toString('utf8'));
  const foreign = items.findIndex(({ message }) => message.cluster !== cluster);
  if (foreign >= 0) throw new Refusal('cluster_mismatch', { index: foreign });
  return items;
}

async function tellBacklog(
  { sink, log }: IngestParts,
  signal: AbortSignal,
): Promise<APIGatewayProxyStructuredResultV2> {
  try {
    return json(200, { waiting: await sink.backlog({ signal }) });
  } catch (error) {
    log.warn('backlog unknown', { error: toKbindError(error).message });
    throw new Refusal('queue_unavailable');
  }
}

function header({ headers }: APIGatewayProxyEventV2, name: string): string {
  // The gateway sends names in lower case.
  const value = headers[name];
  if (value === undefined || value === '') throw new Refusal('header_missing');
  return value;
}

function bodyOf({ body = '', isBase64Encoded }: APIGatewayProxyEventV2): Buffer {
  const bytes = Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8');
  if (bytes.length > MAX_INGEST_BODY_BYTES) throw new Refusal('body_too_large');
  return bytes;
}

function checkTime(timestamp: string, now: number): void {
  if (!/^\d{1,12}$/.test(timestamp)) throw new Refusal('timestamp_invalid');
  if (Math.abs(Number(timestamp) * 1000 - now) > TIMESTAMP_WINDOW_MS) throw new Refusal('timestamp_outside_window');
}

const CLUSTER_UID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

async function keysOf(cluster: string, { keyring, log }: IngestParts): Promise<readonly Uint8Array[]> {
  if (!CLUSTER_UID.test(cluster)) throw new Refusal('cluster_unknown');
  const answer = await keyring.keysOf(cluster).catch((thrown: unknown) => {
    const { errorClass, message } = toKbindError(thrown);
    log.error('ingest keys cannot be read', { cluster, errorClass, errorMessage: message });
    throw new Refusal('keys_unavailable');
  });
  switch (answer.found) {
    case 'keys':
      return answer.keys;
    case 'none':
      throw new Refusal('cluster_without_key');
    case 'removed':
      throw new Refusal('cluster_removed');
    case 'unknown':
      throw new Refusal('cluster_unknown');
    case 'unresolved':
      log.error('ingest keys cannot be read', { cluster, errorMessage: answer.reason });
      throw new Refusal('keys_unavailable');
    default:
      throw new KbindError('internal', 'a keyring answered with something else');
  }
}

function readItems(body: string): readonly IngestItem[] {
  try {
    return parseIngestBody(body);
  } catch (error) {
    if (error instanceof RefusedItem)
      throw new Refusal('message_invalid', { words: error.message, index: error.index });
    if (error instanceof KbindError) throw new Refusal('body_invalid', { words: error.message });
    throw error;
  }
}

interface Sorted {
  readonly outgoing: Outgoing;
  readonly index: number;
}

const queueOfItem = ({ message }: IngestItem): ForwarderQueue => queueOf(message);

/** Sends each queue's items; answers with the places of those that were not taken. */
async function deliver(items: readonly IngestItem[], parts: IngestParts, signal: AbortSignal): Promise<number[]> {
  const sorted = items.map((item, index) => ({ outgoing: { queue: queueOfItem(item), ...item }, index }));
  const batches = [...Map.groupBy(sorted, ({ outgoing }) => outgoing.queue).values()].flatMap(inBatches);
  const failed = await Promise.all(batches.map((batch) => sendBatch(batch, parts, signal)));
  return failed.flat().sort((a, b) => a - b);
}

const inBatches = (sorted: readonly Sorted[]): Sorted[][] =>
  Array.from({ length: Math.ceil(sorted.length / MAX_BATCH) }, (_, n) =>
    sorted.slice(n * MAX_BATCH, (n + 1) * MAX_BATCH),
  );

async function sendBatch(batch: readonly Sorted[], { sink, log }: IngestParts, signal: AbortSignal): Promise<number[]> {
  try {
    const failed = new Set(
      await sink.send(
        batch.map(({ outgoing }) => outgoing),
        { signal },
      ),
    );
    return batch.filter((_, position) => failed.has(position)).map(({ index }) => index);
  } catch (error) {
    log.warn('queue unavailable', { error: toKbindError(error).message });
    return batch.map(({ index }) => index);
  }
}

const json = (statusCode: number, body: object, headers: Record<string, string> = {}) => ({
  statusCode,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
});

function accepted(
  { metrics, log }: IngestParts,
  { cluster, all, failed }: { readonly cluster: string; readonly all: number; readonly failed: readonly number[] },
): APIGatewayProxyStructuredResultV2 {
  const taken = all - failed.length;
  metrics.count('IngestAccepted', taken);
  metrics.count('IngestFailed', failed.length);
  if (taken === 0) throw new Refusal('queue_unavailable');
  log.info('keys taken in', { cluster, accepted: taken, failed: failed.length });
  return json(failed.length === 0 ? 202 : 207, { accepted: taken, failed });
}

function refuse(
  { code, message, index }: Refusal,
  { requestContext }: APIGatewayProxyEventV2,
  { metrics, log }: IngestParts,
): APIGatewayProxyStructuredResultV2 {
  const [status] = refusals[code];
  metrics.count('IngestRefused', 1, { reason: code });
  log.warn('request refused', { code, status, sourceIp: requestContext.http.sourceIp });
  const error = { code, message, ...(index === undefined ? {} : { index }) };
  return json(status, { error }, status === 503 ? { 'retry-after': '1' } : {});
}
