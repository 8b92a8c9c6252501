import { setTimeout as delay } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { instant, type Clock, type Instant } from '../model/clock.ts';
import type { KbindError } from '../model/errors.ts';
import { timeoutFor } from './belief.ts';
import { readBody, TooLarge } from './body.ts';
import { parseJson } from './json.ts';
import { withQuery, type Query } from './paths.ts';
import { beforeSending } from './queue-guard.ts';
import { refusalError, requestError, type Asked } from './status.ts';
import type { ConnectionTarget } from './target.ts';
import { isRetryable, networkError, type Transport } from './transport.ts';
import type { Belief } from './types.ts';

export const USER_AGENT = 'kbind-serverless';
const JSON_TYPE = 'application/json';
/** Bodies of refusals beyond this are cut: only their beginning is ever shown. */
const MAX_REFUSAL_BYTES = 1024 * 1024;
/** A request with all its answer takes no longer, ms: a server that trickles must not hold a reconcile. */
const MAX_REQUEST_MS = 60_000;
/** After a reset or a failed connect: at most twice, with jitter (client-facts.md). */
const RETRY_DELAYS_MS = [100, 400];

/** One request: what is asked of which object, and how. */
export interface Call extends Asked {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Query | undefined;
  readonly accept?: string | undefined;
  readonly contentType?: string | undefined;
  readonly body?: string | undefined;
  readonly belief?: Belief | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Bytes of the answer; class `invalid` beyond. */
  readonly maxBytes: number;
  /** Whether JSON may come as `text/plain`. */
  readonly plainText?: boolean | undefined;
}

export interface Answer {
  readonly json: unknown;
  readonly bytes: number;
  /** When the first attempt left. */
  readonly sentAt: Instant;
}

export interface ExchangeOptions {
  readonly clock: Clock;
  /** Ends everything that is under way. */
  readonly signal?: AbortSignal | undefined;
  readonly side?: 'consumer' | 'provider' | undefined;
  /** Waits between attempts; tests do not wait. */
  readonly sleep?: ((ms: number, signal?: AbortSignal) => Promise<unknown>) | undefined;
  /** 0 to 1, for the jitter. */
  readonly random?: (() => number) | undefined;
}

/** Sends requests to one API server: authorization, retries, caps, errors. */
export class Exchange {
  readonly #target: ConnectionTarget;
  readonly #transport: Transport;
  readonly #options: ExchangeOptions;
  #serverDate: number | undefined;

  constructor(target: ConnectionTarget, transport: Transport, options: ExchangeOptions) {
    this.#target = target;
    this.#transport = transport;
    this.#options = options;
  }

  /** Latest `Date` that the server has shown, as far as our own clock bears it out (types.ts says why), epoch ms. */
  get serverDate(): number | undefined {
    return this.#serverDate;
  }

  get clock(): Clock {
    return this.#options.clock;
  }

  /** Sends and reads a whole JSON answer. Throws our errors only. */
  async send(call: Call): Promise<Answer> {
    const asked = this.asked(call);
    const sentAt = instant(this.clock);
    for (let attempt = 0; ; attempt += 1) {
      using end = endingWith([this.#options.signal, call.signal], MAX_REQUEST_MS);
      try {
        return { ...(await this.#attempt(call, asked, end.signal)), sentAt };
      } catch (error) {
        const wait = RETRY_DELAYS_MS[attempt];
        const again = wait !== undefined && call.method !== 'POST' && isRetryable(error) && !end.signal.aborted;
        if (!again) throw this.toError(error, asked, call.signal);
        await this.#pause(wait, call.signal, asked);
      }
    }
  }

  /** Opens a stream: answers once the server has said 200, with the body unread. Nothing is retried. */
  async open(call: Call, idleMs: number): Promise<Dispatcher.ResponseData['body']> {
    const asked = this.asked(call);
    const signal = this.#signalFor(call.signal);
    try {
      const response = await this.#transport.streams.request({
        ...(await this.#requestOptions(call)),
        bodyTimeout: idleMs,
        signal,
      });
      this.#noteDate(response.headers['date']);
      await this.#refuse(response, asked);
      return response.body;
    } catch (error) {
      throw this.toError(error, asked, call.signal);
    }
  }

  /** What an error of this call is about, with the side. */
  asked({ verb, ref, key }: Asked): Asked {
    return { verb, ref, key, side: this.#options.side };
  }

  /** Any failure of a call as one of our errors. */
  toError(error: unknown, asked: Asked, signal: AbortSignal | undefined): KbindError {
    if (error instanceof TooLarge) return requestError('invalid', asked, 'the answer is too large', error);
    const aborted = (this.#options.signal?.aborted ?? false) || (signal?.aborted ?? false);
    return networkError(error, asked, aborted);
  }

  async #attempt(call: Call, asked: Asked, signal: AbortSignal): Promise<Omit<Answer, 'sentAt'>> {
    const guarded = beforeSending(this.#transport.requests, call.belief, this.clock);
    const response = await guarded.request({ ...(await this.#requestOptions(call)), signal });
    this.#noteDate(response.headers['date']);
    await this.#refuse(response, asked, call.plainText);
    const body = await readBody(response.body, call.maxBytes);
    return { json: parseAnswer(body, asked), bytes: body.byteLength };
  }

  async #requestOptions(call: Call): Promise<Dispatcher.RequestOptions> {
    const authorization = await this.#authorization();
    const timeout = timeoutFor(call.belief, this.clock);
    const query = timeout === undefined ? call.query : { ...call.query, timeout: `${timeout}ms` };
    const path = `${this.#transport.base}${call.path}`;
    return {
      method: call.method,
      path: query === undefined ? path : withQuery(path, query),
      // undici gives up the connection after a DELETE with a body, in case the server does not expect one. API servers read it.
      reset: false,
      headers: {
        'user-agent': USER_AGENT,
        accept: call.accept ?? JSON_TYPE,
        // So that a byte counted is a byte held; what comes compressed all the same is refused.
        'accept-encoding': 'identity',
        ...(authorization === undefined ? {} : { authorization }),
        ...(call.body === undefined ? {} : { 'content-type': call.contentType ?? JSON_TYPE }),
      },
      ...(call.body === undefined ? {} : { body: call.body }),
    };
  }

  async #authorization(): Promise<string | undefined> {
    const { authorization, token, username, password } = this.#target;
    if (authorization !== undefined) return authorization();
    if (token !== undefined) return `Bearer ${token}`;
    if (username === undefined) return undefined;
    return `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}`;
  }

  /** Throws for every answer that is no JSON answer of an API server. */
  async #refuse(response: Dispatcher.ResponseData, asked: Asked, plainText = false): Promise<void> {
    const { statusCode, headers } = response;
    if (statusCode >= 300) {
      const bytes = await readBody(response.body, MAX_REFUSAL_BYTES, 'cut');
      const retryAfter = headers['retry-after'];
      const refusal = { status: statusCode, body: new TextDecoder().decode(bytes) };
      throw refusalError(
        typeof retryAfter === 'string' ? { ...refusal, retryAfter } : refusal,
        asked,
        this.clock.now(),
      );
    }
    const problem = headProblem(headers, plainText);
    if (problem === undefined) return;
    response.body.on('error', () => undefined).destroy();
    throw requestError('unavailable', asked, problem);
  }

  #noteDate(header: string | string[] | undefined): void {
    const shown = typeof header === 'string' ? Date.parse(header) : Number.NaN;
    if (!Number.isFinite(shown)) return;
    const date = Math.min(shown, this.clock.now());
    this.#serverDate = Math.max(date, this.#serverDate ?? date);
  }

  #signalFor(signal: AbortSignal | undefined): AbortSignal {
    return AbortSignal.any([this.#options.signal, signal].filter((one) => one !== undefined));
  }

  async #pause(ms: number, signal: AbortSignal | undefined, asked: Asked): Promise<void> {
    const { sleep = delayUntil, random = Math.random } = this.#options;
    const any = this.#signalFor(signal);
    try {
      await sleep(ms * (0.5 + random()), any);
    } catch (error) {
      throw this.toError(error, asked, signal);
    }
  }
}

/**
 * Aborts with the first of the signals, or when the time is up. What AbortSignal.any and AbortSignal.timeout set up outlives
 * the request, timer and all: a twentieth of a busy function's time.
 */
function endingWith(
  signals: readonly (AbortSignal | undefined)[],
  maxMs: number,
): { readonly signal: AbortSignal } & Disposable {
  const controller = new AbortController();
  const end = (): void => controller.abort();
  const timer = setTimeout(end, maxMs);
  for (const signal of signals) {
    if (signal?.aborted === true) end();
    signal?.addEventListener('abort', end, { once: true });
  }
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      clearTimeout(timer);
      for (const signal of signals) signal?.removeEventListener('abort', end);
    },
  };
}

const delayUntil = (ms: number, signal?: AbortSignal): Promise<void> =>
  delay(ms, undefined, signal === undefined ? {} : { signal });

const JSON_TYPES = /^application\/(?:[\w.-]+\+)?json\b/i;
const JSON_OR_PLAIN = /^(?:application\/(?:[\w.-]+\+)?json|text\/plain)\b/i;

/** Why the head of a 2xx answer is not that of an API server's JSON. */
function headProblem(headers: Dispatcher.ResponseData['headers'], plainText: boolean): string | undefined {
  const type = headers['content-type'];
  const types = plainText ? JSON_OR_PLAIN : JSON_TYPES;
  if (typeof type !== 'string' || !types.test(type)) return 'the answer is no JSON';
  const encoding = headers['content-encoding'];
  return encoding === undefined || encoding === 'identity' ? undefined : 'the answer is compressed unasked';
}

function parseAnswer(body: Uint8Array, asked: Asked): unknown {
  try {
    return parseJson(body);
  } catch {
    // The parser's words quote the body.
    throw requestError('unavailable', asked, 'the answer is no JSON');
  }
}
