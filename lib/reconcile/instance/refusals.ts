import { keyText, type KubeObject } from '../../model/api.ts';
import { isError, KbindError } from '../../model/errors.ts';
import { waitForDeletion, waitForPermission, type Outcome } from '../../model/outcome.ts';
import type { Work } from './work.ts';

/**
 * A 403 of the provider that no write of a spec met (a read, a deletion, a drain): said on the object, which waits for the
 * permission by the error's class. What is forbidden about the Connection as a whole is its own condition.
 */
export async function tellForbidden(
  { world, api, providerKey }: Work,
  object: KubeObject,
  error: unknown,
): Promise<void> {
  if (!isError(error, 'forbidden') || error.details.side !== 'provider' || error.details.api !== api.name) return;
  world.trace.step('Warning Event', 'Forbidden');
  const copy = `${api.name} ${keyText(providerKey)}`;
  const message = `The provider forbids what ${copy} needs: ${error.message}. Ask its admin for the permission; it is tried again every 30 s.`;
  await world.events.warn(object, 'Forbidden', message);
}

/** The version of an object that was refused: its later ones may be taken. */
export const versionOf = ({ metadata: { uid, resourceVersion } }: KubeObject): string => `${uid}/${resourceVersion}`;

/** The same refusal, known by what was refused: it leaves one dead letter, however often that is tried. */
export const ofVersion = (error: KbindError, refused: string): KbindError =>
  new KbindError('invalid', error.message, { ...error.details, refused }, error);

/**
 * What becomes of a spec that the provider did not take. Forbidden: an Event, and again after 30 s for as long as it lasts.
 * A namespace that is being terminated is waited for. Refused for what it is: an Event with the server's words, then thrown
 * (one dead letter). Anything else is thrown, to be retried.
 */
export async function tellRefusal(work: Work, source: KubeObject, error: unknown): Promise<Outcome> {
  const { world, api, providerKey } = work;
  const object = `${api.name} ${keyText(providerKey)}`;
  if (isError(error, 'forbidden')) {
    world.trace.step('Warning Event', 'Forbidden');
    const message = `The provider forbids ${object}: ${error.message}. Ask its admin for the permission; it is tried again every 30 s.`;
    await world.events.warn(source, 'Forbidden', message);
    return waitForPermission('Forbidden');
  }
  if (isError(error, 'namespace-terminating')) return waitForDeletion('the provider namespace is being terminated');
  if (isError(error, 'invalid')) {
    world.trace.step('Warning Event', 'Invalid');
    // Without a status nobody was asked: it is we who cannot copy it.
    const refused =
      error.details.status === undefined ? `${object} cannot be copied` : `The provider refuses ${object}`;
    const message = `${refused}: ${error.message}. It is tried again when this object changes.`;
    await world.events.warn(source, 'Invalid', message);
    throw ofVersion(error, versionOf(source));
  }
  throw error;
}
