import { isError, KbindError, toKbindError } from '../../model/errors.ts';
import type { AnyBinding } from '../../model/kinds.ts';
import { routes, type Route } from '../../model/related.ts';
import type { Side, World } from '../world.ts';
import { sidesOf } from './pass.ts';
import { readCopies, type CopySummary } from './read-both-sides.ts';
import { firstFew } from './report.ts';
import { routesOf } from './sync.ts';
import { whoMade } from './who-made-it.ts';

/** A provider read is tried this often before its copies are left where they are (spec §4). */
const MAX_PROVIDER_READS = 5;

/** What became of a binding's related copies when it went. */
export interface RelatedCleanUp {
  readonly deleted: number;
  /** The server's words where it forbids to read or delete copies; the binding is held, and it is tried again. */
  readonly forbidden: readonly string[];
}

/**
 * Delete related-resource copies owned by this binding: on both sides, by complete lists and by its UID. Walked no sooner
 * than 8 s after the deletionTimestamp, so that no pass makes one any more but with a look that undoes it. Provider
 * finalizers are not waited for. A provider that cannot be read leaves its copies behind, counted and named; a delete that
 * fails is retried. Sources stay.
 */
export async function deleteRelated(world: World, binding: AnyBinding, attempt: number): Promise<RelatedCleanUp> {
  const forbidden: string[] = [];
  const deleted: string[] = [];
  const expected = new Set(routesOf(binding));
  const providerOf = once(() => openProvider(world, binding));
  for (const route of routes) {
    const cleaning: Cleaning = { world, binding, route, attempt, expected: expected.has(route) };
    const side = await targetSide(cleaning, providerOf);
    if (side === undefined) continue;
    const copies = await ownCopies(cleaning, side, forbidden);
    for (const copy of copies) await remove(cleaning, { side, copy, deleted, forbidden });
  }
  if (deleted.length > 0) await tellDeleted(world, binding, deleted);
  return { deleted: deleted.length, forbidden };
}

interface Cleaning {
  readonly world: World;
  readonly binding: AnyBinding;
  readonly route: Route;
  readonly attempt: number;
  /** The binding may have copies there. The other routes are looked at for what the Go konnector left, if they can be. */
  readonly expected: boolean;
}

function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined;
  return () => (answer ??= ask());
}

async function openProvider(world: World, { spec }: AnyBinding): Promise<Side> {
  const { name } = spec.connectionRef;
  const { value: connection } = await world.reads.connection(name);
  if (connection === undefined) throw new KbindError('credential', `Connection ${name} is gone`);
  return world.providers.open(connection);
}

async function targetSide(cleaning: Cleaning, providerOf: () => Promise<Side>): Promise<Side | undefined> {
  const { world, route } = cleaning;
  if (route.direction === 'FromProvider') return world.consumer;
  try {
    return sidesOf(route, world.consumer, await providerOf()).target;
  } catch (error) {
    await leaveBehind(cleaning, error);
    return undefined;
  }
}

async function ownCopies(cleaning: Cleaning, side: Side, forbidden: string[]): Promise<CopySummary[]> {
  const { world, binding, route, expected } = cleaning;
  const namespace = binding.kind === 'Binding' ? binding.metadata.namespace : undefined;
  const owner = { cluster: world.cluster, binding: binding.metadata.uid };
  try {
    const copies = await readCopies({ world, route, target: side, namespace });
    // Another cluster's list says nothing of ours.
    if (expected) await side.confirmIdentity(0);
    return [...copies.values()].filter(
      ({ object }) => whoMade(object, owner) === 'ours' && object.metadata.deletionTimestamp === undefined,
    );
  } catch (error) {
    if (side.which === 'provider') await leaveBehind(cleaning, error);
    else if (!isError(error, 'forbidden')) throw error;
    else if (expected) forbidden.push(error.message);
    return [];
  }
}

/** Errors that say nothing about the provider's side. */
const PASSING: ReadonlySet<string> = new Set(['aborted', 'stale', 'internal', 'conflict']);

/** Throws what is tried again; returns when the copies are left where they are, having said so. */
async function leaveBehind({ world, binding, route, attempt, expected }: Cleaning, error: unknown): Promise<void> {
  const { errorClass, message, details } = toKbindError(error);
  const leftAlone = details.leftAloneSeconds;
  if (!(error instanceof KbindError) || (PASSING.has(errorClass) && leftAlone === undefined)) throw error;
  if (!expected) return;
  if (!isError(error, 'credential', 'identity') && attempt + 1 < MAX_PROVIDER_READS) {
    // Waited for without an attempt, a refusal or a pause would never come to its fifth.
    throw new KbindError('unavailable', message, { ...details, leftAloneSeconds: undefined }, error);
  }
  world.log.warn('related copies left behind', { binding: binding.metadata.name, route: route.name, reason: message });
  world.metrics.count('CopiesLeftBehind');
  const text = `Copies of ${route.ref.resource} may be left on the provider: ${message}. They carry the annotation core.kbind.io/related-binding: ${binding.metadata.uid}; delete them by hand.`;
  await world.events.warn(binding.raw, 'LeftBehind', text);
}

interface Removal {
  readonly side: Side;
  readonly copy: CopySummary;
  readonly deleted: string[];
  readonly forbidden: string[];
}

async function remove(
  { world, route }: Cleaning,
  { side, copy: { key, object }, deleted, forbidden }: Removal,
): Promise<void> {
  const { uid, resourceVersion } = object.metadata;
  try {
    await side.client.delete(route.ref, key, { uid, resourceVersion }, { signal: world.signal });
    deleted.push(`${route.ref.kind} ${key.namespace ?? ''}/${key.name} of the ${side.which}`);
  } catch (error) {
    if (isError(error, 'forbidden')) forbidden.push(`the ${side.which} forbids ${error.message}`);
    else if (!isError(error, 'absent')) throw error;
  }
}

/** L8: whoever kept an instance with Orphan must learn that what belonged to it went. */
async function tellDeleted({ events }: World, binding: AnyBinding, deleted: readonly string[]): Promise<void> {
  const message = `Deleted ${deleted.length} related ${deleted.length === 1 ? 'copy' : 'copies'} with the binding: ${firstFew(deleted)}. deletion-policy: Orphan of an instance does not keep them; their sources stay.`;
  await events.normal(binding.raw, 'RelatedCopiesDeleted', message);
}
