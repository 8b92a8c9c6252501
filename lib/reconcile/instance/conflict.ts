import { changesMarkers, setMarkers, type MarkerChanges } from '../object-writes.ts';
import { confirmSides } from '../side.ts';
import { keyText, type KubeObject } from '../../model/api.ts';
import { CONFLICT_MARKER, CONSUMER_CLUSTER_UID, CONSUMER_OBJECT_UID, TRUE } from '../../model/markers.ts';
import { waitForConflict, type Outcome } from '../../model/outcome.ts';
import { nodes } from './chart.ts';
import { describeHolder } from './who-owns-it.ts';
import { believing, consumerTarget, type Pair, type Work } from './work.ts';

/** Why an instance may not sync: somebody else has its name on the provider. */
export type ConflictReason = 'ForeignObjectExists' | 'OwnedByAnother';

/** Takes both conflict markers off. */
export const noConflict: MarkerChanges = {
  labels: { [CONFLICT_MARKER]: undefined },
  annotations: { [CONFLICT_MARKER]: undefined },
};

/** What a person is told: which object, why, and what can be done. */
function messageOf(work: Work, target: KubeObject, reason: ConflictReason): string {
  const object = `${work.api.name} ${keyText(work.providerKey)}`;
  if (reason === 'ForeignObjectExists') {
    return `The provider already has ${object}, and it is not ours. Delete or rename it there, or set conflictPolicy: Adopt on the binding.`;
  }
  return (
    `The provider's ${object} belongs to another owner (${describeHolder(target)}). To release it, an admin of the ` +
    `provider removes the annotations ${CONSUMER_CLUSTER_UID} and ${CONSUMER_OBJECT_UID} from it, or deletes it.`
  );
}

/** Record conflict annotation (with its label) and Warning Event; the provider object is left alone. */
export async function recordConflict(
  work: Work,
  pair: Pair,
  { target, reason }: { readonly target: KubeObject; readonly reason: ConflictReason },
): Promise<Outcome> {
  const { world } = work;
  world.trace.step(nodes.conflict, reason);
  await setConflict(work, pair, { labels: { [CONFLICT_MARKER]: TRUE }, annotations: { [CONFLICT_MARKER]: reason } });
  await world.events.warn(pair.source, reason, messageOf(work, target, reason));
  return waitForConflict(reason);
}

/** Clear old conflict marker: the first write when an instance syncs again. Answers with the object as it is then. */
export const clearConflict = (work: Work, pair: Pair): Promise<KubeObject> => setConflict(work, pair, noConflict);

/** That something stands in the way, or nothing any more, is believed only of the provider that was meant, asked after the read. */
async function setConflict(
  work: Work,
  { source, provider, belief }: Pair,
  changes: MarkerChanges,
): Promise<KubeObject> {
  if (!changesMarkers(source, changes)) return source;
  await confirmSides(provider, work.world.consumer);
  return setMarkers(work.world.consumer.client, consumerTarget(work, source), changes, believing(work, belief));
}
