import { isError, KbindError } from '../../model/errors.ts';
import { secretText, usedSecretRef } from '../../model/secret-ref.ts';
import { IDENTITY_MAX_AGE_MS, type Probe, type World } from '../world.ts';
import { nodes } from './chart.ts';
import { forbiddenMessage, whatFailed, whoChanged, type Finding } from './what-was-found.ts';
import type { Pass } from './status.ts';

/**
 * Opens the provider and asks both clusters who they are (spec §2.2 and §2.3).
 * @throws whatever says nothing about this Connection: a consumer that is another cluster than the registry's (nothing is
 * written there), a provider that asks for patience, the end of the invocation.
 */
export async function identifyProvider(world: World, { connection }: Pass): Promise<Probe | Finding> {
  const { trace } = world;
  await world.consumer.confirmIdentity(IDENTITY_MAX_AGE_MS);
  try {
    const probe = await world.providers.probe(connection);
    trace.decide(nodes.usable, true);
    trace.step(nodes.identity, probe.side.uid);
    const changed = whoChanged(connection.status, { remote: probe.side.uid, local: world.consumer.uid });
    // A Connection of another consumer behind the address is pinned to that one, and rightly so.
    if (changed !== undefined) await world.consumer.confirmIdentity(0);
    trace.decide(nodes.pinned, changed === undefined);
    return changed ?? probe;
  } catch (error) {
    if (!(error instanceof KbindError) || error.details.side === 'consumer') throw error;
    const finding = whatFailed(error, secretText(usedSecretRef(connection)));
    if (finding === undefined) throw error;
    if (!trace.decide(nodes.usable, finding.is !== 'unusable kubeconfig')) return finding;
    trace.step(nodes.identity, finding.is);
    return finding;
  }
}

/** Runs a step; a 403 in it is a finding, everything else is thrown. */
export async function unlessForbidden<T>(
  step: () => Promise<T>,
  { identified, advice }: { readonly identified: boolean; readonly advice?: string },
): Promise<T | Finding> {
  try {
    return await step();
  } catch (error) {
    if (!isError(error, 'forbidden')) throw error;
    return { is: 'forbidden', message: forbiddenMessage(error, advice), identified };
  }
}
