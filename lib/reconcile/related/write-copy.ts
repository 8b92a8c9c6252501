import { keyText, type KubeObject, type ObjectKey } from '../../model/api.ts';
import { isError, KbindError } from '../../model/errors.ts';
import { RELATED_FIELD_MANAGER } from '../../model/markers.ts';
import { isSelected } from '../../model/related.ts';
import { ensureNamespace } from '../ensure-namespace.ts';
import { asApplied } from '../field-ownership.ts';
import { confirmSides } from '../side.ts';
import { lookAfterCreate } from './look-after-create.ts';
import { believing, type RoutePass } from './pass.ts';
import { carriesEveryMarker, contentHash, contentOf, copyOf, mustReplace, ownContentOf } from './what-to-copy.ts';
import { whoMade } from './who-made-it.ts';

/** What became of one copy. `skipped`: the source is none any more; its own event says so as well. */
export type Written = 'written' | 'skipped' | 'wait' | 'altered';

/** The source as it is now, if an entry still selects it: nothing is copied on the strength of an older look. */
async function selectedSource(pass: RoutePass, key: ObjectKey): Promise<KubeObject | undefined> {
  const { source, route, world, entries } = pass;
  const object = await source.client.find(route.ref, key, { signal: world.signal });
  return object !== undefined && isSelected(entries, object) ? object : undefined;
}

/** Makes a copy where there is none. A name that is taken by now (class `conflict`) starts the reconcile over. */
export async function createCopy(pass: RoutePass, key: ObjectKey): Promise<Written> {
  const source = await selectedSource(pass, key);
  if (source === undefined) return 'skipped';
  await postAndLook(pass, source, key);
  return 'written';
}

/**
 * What goes over was read in one cluster, and another one showed no copy of it: both are asked who they are. A Secret in a
 * cluster that was not meant would stay there, and nobody would look for it.
 */
async function postAndLook(pass: RoutePass, source: KubeObject, key: ObjectKey): Promise<void> {
  let made: KubeObject | undefined;
  let failure: KbindError | undefined;
  await confirmSides(pass.source, pass.target);
  try {
    made = await postWithNamespace(pass, source, key);
  } catch (error) {
    // `stale`: nothing was sent. What is not ours (a dry run's stop) means the same.
    if (!(error instanceof KbindError) || error.errorClass === 'stale') throw error;
    failure = error;
  }
  try {
    await lookAfterCreate(pass, { source, key, made });
  } catch (error) {
    // Who may not create may not be allowed to look either: the first refusal is the news.
    throw isError(error, 'forbidden') ? (failure ?? error) : error;
  }
  if (failure !== undefined) throw failure;
}

async function postWithNamespace(pass: RoutePass, source: KubeObject, key: ObjectKey): Promise<KubeObject> {
  try {
    return await post(pass, source, key);
  } catch (error) {
    if (!isError(error, 'namespace-missing') || key.namespace === undefined) throw error;
    // Another cluster misses it as well.
    await pass.target.confirmIdentity(0);
    const { signal, belief } = await believing(pass);
    await ensureNamespace(pass.target.client, key.namespace, { signal, belief });
    return post(pass, source, key);
  }
}

async function post(pass: RoutePass, source: KubeObject, key: ObjectKey): Promise<KubeObject> {
  const { target, route, owner } = pass;
  const copy = copyOf(source, { ref: route.ref, key }, owner);
  return target.client.create(route.ref, copy, { ...(await believing(pass)), strict: true });
}

/** Makes a copy of ours match its source, by replacing it where it cannot be changed into that. */
export async function updateCopy(pass: RoutePass, key: ObjectKey): Promise<Written> {
  const { target, route, world, owner } = pass;
  const source = await selectedSource(pass, key);
  if (source === undefined) return 'skipped';
  const copy = await target.client.find(route.ref, key, { signal: world.signal });
  if (copy === undefined || whoMade(copy, owner) !== 'ours') {
    throw new KbindError('conflict', `the copy ${keyText(key)} went away while it was updated`);
  }
  if (copy.metadata.deletionTimestamp !== undefined) return 'wait';
  if (fits(pass, copy, source)) return 'skipped';
  await confirmSides(pass.source, target);
  const wanted = contentOf(source);
  const held = ownContentOf(copy);
  const differs = contentHash(held) !== contentHash(wanted);
  return differs && mustReplace(held, wanted) ? replaceCopy(pass, source, copy) : applyCopy(pass, source, copy);
}

const fits = ({ owner }: RoutePass, copy: KubeObject, source: KubeObject): boolean =>
  contentHash(ownContentOf(copy)) === contentHash(contentOf(source)) && carriesEveryMarker(copy, owner);

/** Delete, then create. Dying in between leaves no copy, which the next pass makes. */
async function replaceCopy(pass: RoutePass, source: KubeObject, copy: KubeObject): Promise<Written> {
  const { target, route, world } = pass;
  const { namespace, name, uid } = copy.metadata;
  const key = { namespace, name };
  await deleteCopy(pass, copy);
  const left = await target.client.find(route.ref, key, { signal: world.signal });
  // Somebody's finalizer holds it.
  if (left?.metadata.uid === uid) return 'wait';
  await postAndLook(pass, source, key);
  return 'written';
}

/** Deletes a copy of ours, by uid and resourceVersion; gone already is as good. */
export async function deleteCopy(pass: RoutePass, { metadata }: Pick<KubeObject, 'metadata'>): Promise<void> {
  const { target, route } = pass;
  const { namespace, name, uid, resourceVersion } = metadata;
  try {
    await target.client.delete(route.ref, { namespace, name }, { uid, resourceVersion }, await believing(pass));
  } catch (error) {
    if (!isError(error, 'absent')) throw error;
  }
}

/**
 * Server-side apply. One that would change nothing is not sent: where the target's admission alters what it is given, every
 * pass would write the same again.
 */
async function applyCopy(pass: RoutePass, source: KubeObject, copy: KubeObject): Promise<Written> {
  const managedFields = asApplied(copy, RELATED_FIELD_MANAGER);
  if (managedFields === undefined) {
    const tried = await sendApply(pass, source, { target: copy, dryRun: true });
    const same = contentHash(ownContentOf(tried)) === contentHash(ownContentOf(copy));
    if (same && !fits(pass, tried, source)) return 'altered';
  }
  const owned = managedFields === undefined ? copy : await ownByApply(pass, copy, managedFields);
  const applied = await sendApply(pass, source, { target: owned, dryRun: false });
  return fits(pass, applied, source) ? 'written' : 'altered';
}

/** First apply after a POST: keys that left the source must leave the copy as well (design.md, Writes). */
async function ownByApply(
  pass: RoutePass,
  { metadata }: KubeObject,
  managedFields: NonNullable<ReturnType<typeof asApplied>>,
): Promise<KubeObject> {
  const { namespace, name, uid, resourceVersion } = metadata;
  return pass.target.client.patch(
    pass.route.ref,
    { namespace, name },
    {
      read: { uid, resourceVersion },
      operations: [{ op: 'replace', path: '/metadata/managedFields', value: managedFields }],
    },
    await believing(pass),
  );
}

async function sendApply(
  pass: RoutePass,
  source: KubeObject,
  { target, dryRun }: { readonly target: KubeObject; readonly dryRun: boolean },
): Promise<KubeObject> {
  const { route, owner } = pass;
  const { namespace, name, uid, resourceVersion } = target.metadata;
  const copy = copyOf(source, { ref: route.ref, key: { namespace, name } }, owner);
  // A dry run rests on nothing: it writes nothing.
  const { belief, ...options } = await believing(pass);
  const resting = dryRun ? { dryRun } : { belief };
  return pass.target.client.apply(route.ref, copy, { uid, resourceVersion }, { ...options, ...resting, strict: true });
}
