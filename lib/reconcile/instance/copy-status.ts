import { refuseDeep } from '../../kube/json.ts';
import { keyText, type KubeObject } from '../../model/api.ts';
import { isError } from '../../model/errors.ts';
import { ofVersion, versionOf } from './refusals.ts';
import { statusToCopy } from './status-to-copy.ts';
import { believing, type Pair, type Work } from './work.ts';

/**
 * Copies the provider's status whole, when it differs. Guarded by the uid alone: whatever else changes on the consumer
 * object meanwhile does not make the provider's status less true.
 * @throws KbindError `invalid`, after an Event, for a status that the consumer's schema refuses, or that is nested too deeply.
 */
export async function copyStatus(work: Work, { source, belief }: Pair, copy: KubeObject): Promise<void> {
  const { world, api, name } = work;
  const status = statusToCopy(api, source, copy);
  if (status === undefined) return;
  try {
    refuseDeep(status);
    await world.consumer.client.patch(
      api.ref,
      name.key,
      {
        read: { uid: source.metadata.uid },
        operations: [{ op: 'add', path: '/status', value: status }],
        ...(api.statusSubresource ? { subresource: 'status' as const } : {}),
      },
      believing(work, belief),
    );
  } catch (error) {
    if (isError(error, 'invalid')) {
      const message = `The status of ${api.name} ${keyText(name.key)} is refused by this cluster: ${error.message}`;
      await world.events.warn(source, 'Invalid', message);
      // A provider may go on changing such a status: as long as the object stays as it is, its letters are one.
      throw ofVersion(error, `status/${versionOf(source)}`);
    }
    throw error;
  }
}
