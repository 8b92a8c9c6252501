import { request as httpRequest } from 'undici';
import * as z from 'zod/mini';
import type { Clock } from '../model/clock.ts';
import { KbindError } from '../model/errors.ts';
import type { Logger } from '../model/log.ts';
import { encodeMessage } from '../queue/codec.ts';
import { encodeIngestBody, type IngestItem } from '../queue/ingest-codec.ts';
import { signedHeaders } from '../queue/signed-request.ts';
import { pendingKey } from './pending.ts';
import type { Outgoing, Sink } from './sink.ts';

export interface HttpSinkOptions {
  /** Of the ingest function: https, but for local runs. */
  readonly url: string;
  readonly clusterUid: string;
  /** The key of this cluster, asked for each request: a mounted Secret is replaced while the forwarder runs. */
  readonly key: () => Promise<Uint8Array>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Local runs only. */
  readonly allowLoopback: boolean;
}

/** How long one request may take. */
const SEND_TIMEOUT_MS = 20_000;
const MAX_ANSWER_BYTES = 64 * 1024;

const answerSchema = z.object({
  waiting: z.optional(z.int()),
  accepted: z.optional(z.int()),
  failed: z.optional(z.array(z.int())),
  error: z.optional(z.object({ code: z.string(), message: z.string(), index: z.optional(z.int()) })),
});
type Answer = z.infer<typeof answerSchema>;

/** A message with its place in the batch. */
interface Placed extends IngestItem {
  readonly position: number;
}

/**
 * The sink that sends signed requests to the ingest function: for clusters that cannot hold cloud credentials.
 * @throws KbindError class `misconfigured` for a URL that is not https, unless loopback is allowed
 */
export function createHttpSink(options: HttpSinkOptions): Sink {
  const { url, allowLoopback, log } = options;
  if (!url.startsWith('https://') && !allowLoopback) {
    throw new KbindError('misconfigured', 'INGEST_URL: must be https');
  }
  return {
    async send(batch, { signal }) {
      const placed = sendable(batch, log);
      if (placed.length === 0) return [];
      const items = placed.map(({ message, change }) => ({ message, change }));
      const { status, answer } = await ask(options, { method: 'POST', body: encodeIngestBody(items), signal });
      if (status === 202) return [];
      if (status === 207) return failedOf(placed, answer);
      return refused(placed, { status, answer, log });
    },
    async backlog({ signal }) {
      const { status, answer } = await ask(options, { method: 'GET', body: '', signal });
      if (status === 200 && answer?.waiting !== undefined) return answer.waiting;
      throw notTaken(status, answer);
    },
  };
}

/** A message that nobody could read would be sent in vain for ever: it is named and left. */
function sendable(batch: readonly Outgoing[], log: Logger): Placed[] {
  return batch.flatMap(({ message, change }, position) => {
    try {
      encodeMessage(message);
      return [{ message, change, position }];
    } catch (error) {
      log.error('message cannot be sent', { key: pendingKey(message), error: (error as Error).message });
      return [];
    }
  });
}

interface Asked {
  readonly method: 'GET' | 'POST';
  readonly body: string;
  readonly signal: AbortSignal;
}

/** One signed request. */
async function ask(
  { url, clusterUid, key, clock }: HttpSinkOptions,
  { method, body: text, signal }: Asked,
): Promise<{ readonly status: number; readonly answer: Answer | undefined }> {
  const body = Buffer.from(text);
  const headers = signedHeaders(await key(), { cluster: clusterUid, body, now: clock.now() });
  try {
    const response = await httpRequest(url, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(method === 'POST' ? { body } : {}),
      signal: AbortSignal.any([signal, AbortSignal.timeout(SEND_TIMEOUT_MS)]),
    });
    return { status: response.statusCode, answer: await readAnswer(response.body) };
  } catch (error) {
    throw new KbindError('unavailable', `ingest: ${(error as Error).message}`, {}, error);
  }
}

async function readAnswer(body: AsyncIterable<Uint8Array>): Promise<Answer | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > MAX_ANSWER_BYTES) return undefined;
    chunks.push(chunk);
  }
  const parsed = answerSchema.safeParse(jsonOrNothing(Buffer.concat(chunks).toString('utf8')));
  return parsed.success ? parsed.data : undefined;
}

function jsonOrNothing(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A load balancer's page: the status says enough.
    return undefined;
  }
}

/** Fail closed: an answer that does not say what failed took nothing. */
function failedOf(placed: readonly Placed[], answer: Answer | undefined): readonly number[] {
  const failed = answer?.failed;
  if (failed === undefined) return placed.map(({ position }) => position);
  return placed.filter((_, index) => failed.includes(index)).map(({ position }) => position);
}

/** One message that is refused for itself is left, so that it does not hold up the others; everything else is tried again. */
function refused(
  placed: readonly Placed[],
  { status, answer, log }: { status: number; answer: Answer | undefined; log: Logger },
): readonly number[] {
  const error = answer?.error;
  const bad = error?.code === 'message_invalid' ? placed[error.index ?? -1] : undefined;
  if (bad !== undefined) {
    log.error('ingest refused a message for good', { key: pendingKey(bad.message), error: error?.message });
    return placed.filter((one) => one !== bad).map(({ position }) => position);
  }
  throw notTaken(status, answer);
}

function notTaken(status: number, answer: Answer | undefined): KbindError {
  const error = answer?.error;
  const errorClass = status === 401 ? 'unauthorized' : status === 403 ? 'forbidden' : 'unavailable';
  const words = error === undefined ? '' : ` ${error.code}: ${error.message.slice(0, 200)}`;
  return new KbindError(errorClass, `ingest answered ${status}${words}`, { status });
}
