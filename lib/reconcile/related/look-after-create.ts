import { parseBinding, type AnyBinding } from '../../model/kinds.ts';
import { keyText, resources, type KubeObject, type ObjectKey } from '../../model/api.ts';
import { isError, KbindError } from '../../model/errors.ts';
import { entriesOf, isSelected } from '../../model/related.ts';
import { untilAnswered } from '../until-answered.ts';
import type { RoutePass } from './pass.ts';
import { whoMade } from './who-made-it.ts';

/** A copy that was asked for. */
export interface Created {
  readonly source: KubeObject;
  readonly key: ObjectKey;
  /** The POST's answer, where it had one: that is the look at the target. */
  readonly made: KubeObject | undefined;
}

/**
 * The look after a create (design.md, Writes; spec §5: at the binding and at the source), made after any answer to it, none
 * included. Between the reads and the write, the binding may have been deleted and cleaned up, or its entry or the source
 * may have gone: what the write made would then stay for ever. A copy that nobody asks for is deleted by uid and
 * resourceVersion.
 * @throws KbindError `conflict` after an undo, so that the reconcile starts over from what is there now.
 */
export async function lookAfterCreate(pass: RoutePass, created: Created): Promise<void> {
  const { world, owner } = pass;
  const copy = created.made ?? (await untilAnswered(world.signal, () => readCopy(pass, created.key)));
  if (copy === undefined || whoMade(copy, owner) !== 'ours') return;
  const [binding, source] = await Promise.all([
    untilAnswered(world.signal, () => readBinding(pass)),
    untilAnswered(world.signal, () => readSource(pass, created.key)),
  ]);
  if (isKept(pass, binding, source)) return;
  // Absent counts only from the clusters that they were read from.
  await untilAnswered(world.signal, () => world.consumer.confirmIdentity(0));
  await untilAnswered(world.signal, () => pass.source.confirmIdentity(0));
  world.trace.step('Look after the write', `${keyText(created.key)}: undone, nobody asks for it any more`);
  await undo(pass, copy);
  await readBindingAnew(pass);
  throw new KbindError('conflict', 'the binding or the source changed while a related copy was made');
}

/** The copy has a keeper: this binding, not deleting, at this provider, with an entry that selects the source. */
function isKept({ binding, route }: RoutePass, now: KubeObject | undefined, source: KubeObject | undefined): boolean {
  if (now === undefined || now.metadata.uid !== binding.metadata.uid) return false;
  if (now.metadata.deletionTimestamp !== undefined || source === undefined) return false;
  if (now.metadata.generation === binding.metadata.generation) return isSelected(entriesOf(binding, route), source);
  const edited = parsed(now, binding.kind);
  // What cannot be read decides nothing; the copy stays until the binding is mended.
  if (edited === undefined) return true;
  return (
    edited.spec.connectionRef.name === binding.spec.connectionRef.name && isSelected(entriesOf(edited, route), source)
  );
}

function parsed(object: KubeObject, kind: AnyBinding['kind']): AnyBinding | undefined {
  try {
    return parseBinding(object, kind);
  } catch {
    return undefined;
  }
}

const readCopy = ({ target, route, world }: RoutePass, key: ObjectKey): Promise<KubeObject | undefined> =>
  target.client.find(route.ref, key, { signal: world.signal });

const readSource = ({ source, route, world }: RoutePass, key: ObjectKey): Promise<KubeObject | undefined> =>
  source.client.find(route.ref, key, { signal: world.signal });

function readBinding({ world, binding }: RoutePass): Promise<KubeObject | undefined> {
  const { namespace, name } = binding.metadata;
  const ref = binding.kind === 'ClusterBinding' ? resources.clusterBindings : resources.bindings;
  return world.consumer.client.find(ref, { namespace, name }, { signal: world.signal });
}

/** What the batch shares of bindings may be older than this look: the reconcile that starts over must not read that again. */
async function readBindingAnew({ world, binding }: RoutePass): Promise<void> {
  const fresh = { fresh: true };
  await (binding.kind === 'ClusterBinding' ? world.reads.clusterBindings(fresh) : world.reads.bindings(fresh));
}

async function undo(pass: RoutePass, copy: KubeObject): Promise<void> {
  const { world, target, route, owner } = pass;
  const { namespace, name } = copy.metadata;
  const key = { namespace, name };
  let current: KubeObject | undefined = copy;
  while (whoMade(current, owner) === 'ours' && current?.metadata.deletionTimestamp === undefined) {
    const { uid, resourceVersion }: KubeObject['metadata'] = (current ?? copy).metadata;
    try {
      await target.client.delete(route.ref, key, { uid, resourceVersion }, { signal: world.signal });
      return;
    } catch (error) {
      // Somebody wrote in between, or no answer came: what stands now decides. Anything else is thrown.
      if (!isError(error, 'conflict', 'absent', 'unavailable', 'throttled') || world.signal.aborted) throw error;
    }
    current = await untilAnswered(world.signal, () => readCopy(pass, key));
  }
}
