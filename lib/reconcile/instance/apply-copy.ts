import { jsonEqual } from '../../kube/json.ts';
import { keyText, type KubeObject } from '../../model/api.ts';
import { KbindError } from '../../model/errors.ts';
import { asApplied } from '../field-ownership.ts';
import { confirmSides } from '../side.ts';
import { lookAfterWrite } from './look-after-write.ts';
import { holdsSpec, holdsSpecLoosely } from './holds-spec.ts';
import { needsApply } from './needs-apply.ts';
import { copyOf } from './what-to-apply.ts';
import { believing, ownerOf, type Pair, type Work } from './work.ts';

/**
 * Makes a copy of ours match its source; answers with the copy as it is then. A copy that drifted though this very spec
 * was applied is tried in a dry run first: where the provider's admission alters it, nothing is written.
 */
export async function updateCopy(work: Work, pair: Pair, copy: KubeObject): Promise<KubeObject> {
  const need = needsApply(pair.source, copy, ownerOf(work, pair.source));
  work.world.trace.step('Apply needed?', need);
  if (need === 'no') return copy;
  if (need === 'drifted' && !(await wouldMend(work, pair, copy))) return copy;
  const owned = await ownByApply(work, pair, copy);
  const applied = await sendApply(work, pair, { target: owned, dryRun: false });
  if (!holdsSpecLoosely(applied, pair.source)) await tellAltered(work, pair.source);
  return applied;
}

/**
 * Takes over a markerless object, and looks again at its source: one that went away meanwhile must not hold it. Nothing on the
 * object says which cluster it stands in: that is asked before.
 */
export async function adoptCopy(work: Work, pair: Pair, target: KubeObject): Promise<KubeObject> {
  await confirmSides(pair.provider, work.world.consumer);
  let made: KubeObject | undefined;
  let failure: KbindError | undefined;
  try {
    made = await sendApply(work, pair, { target, dryRun: false });
  } catch (error) {
    if (!(error instanceof KbindError) || error.errorClass === 'stale') throw error;
    failure = error;
  }
  const copy = await lookAfterWrite(work, pair, { made, undo: 'unmark' });
  if (failure !== undefined) throw failure;
  return copy ?? target;
}

/** First apply after a POST: fields that leave the consumer's spec must leave the copy as well. */
async function ownByApply(work: Work, { provider, belief }: Pair, target: KubeObject): Promise<KubeObject> {
  const managedFields = asApplied(target);
  if (managedFields === undefined) return target;
  const { uid, resourceVersion } = target.metadata;
  return provider.client.patch(
    work.api.ref,
    work.providerKey,
    {
      read: { uid, resourceVersion },
      operations: [{ op: 'replace', path: '/metadata/managedFields', value: managedFields }],
    },
    believing(work, belief),
  );
}

function sendApply(
  work: Work,
  { source, provider, belief }: Pair,
  { target, dryRun }: { readonly target: KubeObject; readonly dryRun: boolean },
): Promise<KubeObject> {
  const { api, providerKey } = work;
  const { uid, resourceVersion } = target.metadata;
  const copy = copyOf(source, { ref: api.ref, key: providerKey }, ownerOf(work, source));
  return provider.client.apply(
    api.ref,
    copy,
    { uid, resourceVersion },
    { ...believing(work, belief), strict: true, dryRun },
  );
}

/** True when an apply would bring the copy nearer to its source. Tells when the provider's admission alters it. */
async function wouldMend(work: Work, pair: Pair, copy: KubeObject): Promise<boolean> {
  const answer = await sendApply(work, pair, { target: copy, dryRun: true });
  if (holdsSpec(answer, pair.source)) return true;
  work.world.trace.step('Dry run of the apply', 'the provider alters the spec');
  const altered = !holdsSpecLoosely(answer, pair.source);
  if (altered && jsonEqual(answer.spec ?? null, copy.spec ?? null)) await tellAltered(work, pair.source);
  return false;
}

async function tellAltered({ world, api, providerKey }: Work, source: KubeObject): Promise<void> {
  const object = `${api.name} ${keyText(providerKey)}`;
  const message = `The provider's admission alters the spec of ${object}: what it holds differs from what was applied. Nothing more is written until either changes.`;
  await world.events.warn(source, 'SpecAltered', message);
}
