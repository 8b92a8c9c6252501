import { keyOf, keyText, type KubeObject } from '../model/api.ts';
import { isDeleting } from '../model/crd.ts';
import { KbindError, toKbindError } from '../model/errors.ts';
import { CONSUMER_CLUSTER_UID } from '../model/markers.ts';
import type { ListOptions } from '../kube/types.ts';
import { errorRecord } from '../queue/dead-letters.ts';
import { instanceApi } from '../reconcile/instance/which-api.ts';
import { readBindings } from '../reconcile/instance/work.ts';
import type { Side, World } from '../reconcile/world.ts';
import { orderText } from '../sweep/key-order.ts';
import { mergeSides, type Pairing } from '../sweep/merge.ts';
import { judge, type SweptApi } from '../sweep/needs-work.ts';
import { PagedList } from '../sweep/paged-list.ts';

/** What a backstop would find between the two sides of one API, as a report: nothing is enqueued. */
export interface Comparison {
  readonly compared: number;
  readonly inSync: number;
  /** False: the provider could not be read. */
  readonly complete: boolean;
  readonly note?: string | undefined;
  readonly differences: readonly SideDifference[];
}

export interface SideDifference {
  readonly kind: DifferenceKind;
  /** `namespace/name`. */
  readonly key: string;
  /** In the backstop's words. */
  readonly why: string;
}

export type DifferenceKind = 'missing' | 'drifted' | 'stale-status' | 'foreign' | 'orphaned' | 'other';

/** The backstop's reasons by what an operator calls them; all others are `other`. */
const KINDS: Readonly<Record<string, DifferenceKind>> = {
  'no finalizer': 'missing',
  'no copy': 'missing',
  'drifted spec': 'drifted',
  'another applied hash or a marker missing': 'drifted',
  'differing status': 'stale-status',
  'the copy is not ours': 'foreign',
  conflict: 'foreign',
};

/**
 * Compares both sides of an API page by page.
 * @throws KbindError class `absent` for an API that the consumer does not have, and for what makes its side unreadable
 */
export async function compareSides(world: World, api: string): Promise<Comparison> {
  const { value: crd } = await world.reads.crd(api);
  if (crd === undefined) throw new KbindError('absent', `the consumer has no API ${api}`);
  const instances = instanceApi(crd);
  const [lists, connection] = await Promise.all([readBindings(world), connectionOf(world, instances.connection)]);
  const swept: SweptApi = {
    api: instances,
    cluster: world.cluster,
    lists: lists.value,
    connection,
    serverDate: world.consumer.client.serverDate(),
  };
  const opened = await openProvider(world, swept);
  return walk(world, swept, opened);
}

async function connectionOf(world: World, name: string | undefined): Promise<SweptApi['connection']> {
  return name === undefined ? undefined : (await world.reads.connection(name)).value;
}

type Opened = { readonly provider: Side } | { readonly note: string };

async function openProvider(world: World, { connection, api }: SweptApi): Promise<Opened> {
  if (connection === undefined) return { note: `Connection ${api.connection ?? '(none)'} does not exist` };
  try {
    return { provider: await world.providers.open(connection) };
  } catch (thrown) {
    return { note: `the provider cannot be read: ${errorRecord(toKbindError(thrown)).message}` };
  }
}

const sourceKey = (object: KubeObject): string => orderText(keyOf(object));

async function walk(world: World, swept: SweptApi, opened: Opened): Promise<Comparison> {
  const { ref } = swept.api;
  const { signal, consumer } = world;
  const provider = 'provider' in opened ? opened.provider : undefined;
  const pages = (side: Side, options: ListOptions): PagedList =>
    new PagedList({ load: (page) => side.client.list(ref, { signal, ...options, ...page }), keyOf: sourceKey });
  const sides = {
    consumer: pages(consumer, {}),
    provider: provider && pages(provider, { labelSelector: `${CONSUMER_CLUSTER_UID}=${world.cluster}` }),
    sourceKey,
    copyKey: sourceKey,
  };
  const differences: SideDifference[] = [];
  let compared = 0;
  let inSync = 0;
  for await (const pairing of mergeSides(sides)) {
    const found = await compare(world, swept, pairing, provider);
    compared += 1;
    if (found === 'in sync') inSync += 1;
    else if (found !== undefined) differences.push(found);
  }
  const note = 'note' in opened ? opened.note : undefined;
  return { compared, inSync, complete: note === undefined, ...(note === undefined ? {} : { note }), differences };
}

async function compare(
  world: World,
  swept: SweptApi,
  { source, copy, certain }: Pairing,
  provider: Side | undefined,
): Promise<SideDifference | 'in sync' | undefined> {
  if (source === undefined) return copy === undefined || !certain ? undefined : orphan(world, swept, copy);
  const there = certain ? copy : await lookUp(world, swept, source, provider);
  // What the label does not select may be there all the same: somebody else's, with the same name.
  const target = there === undefined && certain ? await lookUp(world, swept, source, provider) : there;
  const { work, synced } = judge(swept, source, target);
  if (work === undefined) return synced ? 'in sync' : undefined;
  return { kind: KINDS[work] ?? 'other', key: keyText(keyOf(source)), why: work };
}

async function lookUp(
  { signal }: World,
  { api }: SweptApi,
  source: KubeObject,
  provider: Side | undefined,
): Promise<KubeObject | 'unknown' | undefined> {
  return provider === undefined ? 'unknown' : provider.client.find(api.ref, keyOf(source), { signal });
}

async function orphan(
  { consumer, signal }: World,
  { api }: SweptApi,
  copy: KubeObject,
): Promise<SideDifference | undefined> {
  const key = keyOf(copy);
  if (isDeleting(copy)) return undefined;
  const source = await consumer.client.find(api.ref, key, { signal });
  return source === undefined
    ? { kind: 'orphaned', key: keyText(key), why: 'provider copy without a source' }
    : undefined;
}
