import { createHash } from 'node:crypto';
import { keyText, resources, type KubeObject, type ObjectKey } from '../model/api.ts';
import { kubeTime } from '../model/conditions.ts';
import type { Clock } from '../model/clock.ts';
import { isError, toKbindError } from '../model/errors.ts';
import type { Logger } from '../model/log.ts';
import { cleanText } from './status.ts';
import type { KubeClient } from './types.ts';

/** The least time between two writes for a condition that lasts (spec §8.6), ms. */
const QUIET_MS = 600_000;
/** The API server takes 1,024 characters. */
const MAX_MESSAGE = 1_000;
/** Names are DNS subdomains of at most 253 characters; the hash tells long ones apart. */
const MAX_NAME_PART = 230;
/** Events that a container remembers to have written. */
const MAX_REMEMBERED = 2_000;

type EventType = 'Warning' | 'Normal';

/** See `Events` in lib/reconcile/world.ts. */
export interface EventWriter {
  warn(object: KubeObject, reason: string, message: string): Promise<void>;
  normal(object: KubeObject, reason: string, message: string): Promise<void>;
}

interface Occasion {
  readonly type: EventType;
  readonly object: KubeObject;
  readonly reason: string;
  readonly message: string;
}

/**
 * Writes core/v1 Events. The name is made of the object, the reason and the message, so that the same news counts up
 * instead of multiplying, whoever writes it; while a condition lasts it is written at most every ten minutes. Best effort:
 * failures are logged, never thrown. Events of cluster-scoped objects live in `default`.
 */
export function createEvents(
  client: Pick<KubeClient, 'find' | 'create' | 'patch'>,
  clock: Clock,
  component: string,
  log: Logger,
): EventWriter {
  const written = new Map<string, number>();
  const write = async (occasion: Occasion): Promise<void> => {
    const key = eventKey(occasion);
    const last = written.get(keyText(key));
    if (last !== undefined && clock.now() - last < QUIET_MS) return;
    try {
      await createOrCountUp(client, { key, occasion, component, nowMs: clock.now() });
      remember(written, keyText(key), clock.now());
    } catch (error) {
      const { errorClass, message } = toKbindError(error);
      log.warn('event not written', { reason: occasion.reason, errorClass, error: message });
    }
  };
  const tell =
    (type: EventType) =>
    (object: KubeObject, reason: string, message: string): Promise<void> =>
      write({ type, object, reason, message: cleanText(message, MAX_MESSAGE) });
  return { warn: tell('Warning'), normal: tell('Normal') };
}

function remember(written: Map<string, number>, name: string, nowMs: number): void {
  written.delete(name);
  written.set(name, nowMs);
  if (written.size <= MAX_REMEMBERED) return;
  for (const oldest of written.keys()) {
    written.delete(oldest);
    break;
  }
}

function eventKey({ object, type, reason, message }: Occasion): ObjectKey {
  const { namespace = '', name, uid } = object.metadata;
  const news = JSON.stringify([uid, type, reason, message]);
  const hash = createHash('sha256').update(news).digest('hex').slice(0, 16);
  return { namespace: namespace === '' ? 'default' : namespace, name: [...labelsOf(name), hash].join('.') };
}

/** The DNS labels that an object's name gives; some kinds have names that are none. */
const labelsOf = (name: string): string[] =>
  name
    .toLowerCase()
    .slice(0, MAX_NAME_PART)
    .split(/[^a-z0-9-]+/)
    .map((label) => label.replaceAll(/^-+|-+$/g, ''))
    .filter((label) => label !== '');

interface Writing {
  readonly key: ObjectKey;
  readonly occasion: Occasion;
  readonly component: string;
  readonly nowMs: number;
}

async function createOrCountUp(client: Pick<KubeClient, 'find' | 'create' | 'patch'>, writing: Writing): Promise<void> {
  const { key, nowMs } = writing;
  const present = await client.find(resources.events, key);
  if (present === undefined) {
    await client.create(resources.events, newEvent(writing));
    return;
  }
  const last = Date.parse(String(present['lastTimestamp']));
  if (nowMs - last < QUIET_MS) return;
  const count = typeof present['count'] === 'number' ? present['count'] : 1;
  try {
    await client.patch(resources.events, key, {
      read: present.metadata,
      operations: [
        { op: 'add', path: '/count', value: count + 1 },
        { op: 'add', path: '/lastTimestamp', value: kubeTime(nowMs) },
      ],
    });
  } catch (error) {
    // Somebody else has counted the same news up a moment ago, or it has just expired.
    if (!isError(error, 'conflict')) throw error;
  }
}

function newEvent({ key, occasion: { type, object, reason, message }, component, nowMs }: Writing) {
  const { namespace, name, uid, resourceVersion } = object.metadata;
  const { apiVersion, kind } = object;
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { namespace: key.namespace, name: key.name },
    involvedObject: { apiVersion, kind, namespace, name, uid, resourceVersion },
    type,
    reason,
    message,
    count: 1,
    firstTimestamp: kubeTime(nowMs),
    lastTimestamp: kubeTime(nowMs),
    source: { component },
    reportingComponent: component,
    reportingInstance: component,
  };
}
