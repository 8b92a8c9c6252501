import pLimit from 'p-limit';
import { keyOf, keyText, type KubeObject, type MetaObject, type ObjectKey } from '../../model/api.ts';
import { isError, type KbindError } from '../../model/errors.ts';
import { CONSUMER_CLUSTER_UID, MANAGED_LABEL, TRUE } from '../../model/markers.ts';
import { isSelected, sourceQueries, type RelatedEntry, type Route } from '../../model/related.ts';
import type { Side, World } from '../world.ts';
import { everyPage } from './every-page.ts';
import type { RoutePass } from './pass.ts';
import { contentHash, contentOf, ownContentOf } from './what-to-copy.ts';

/** Lists of one route that are asked for side by side. */
const SIDE_BY_SIDE = 4;

/** What is remembered of a source: nothing of its contents but a hash, and that only while the pass lasts. */
export interface SourceSummary {
  readonly key: ObjectKey;
  readonly hash: string;
}

/** What is remembered of an object that carries our managed label. */
export interface CopySummary {
  readonly key: ObjectKey;
  /** Its metadata without `managedFields`. */
  readonly object: MetaObject;
  /** Of what it holds of ours; undefined where only metadata was asked for. */
  readonly hash: string | undefined;
}

/** The selected sources, and what kept the list from being complete. */
export interface Sources {
  readonly byKey: ReadonlyMap<string, SourceSummary>;
  readonly refused: readonly { readonly entry: RelatedEntry; readonly error: KbindError }[];
}

/** Every source that an entry of the route selects: asked of the server by selector, names one by one. */
export async function readSources(pass: RoutePass): Promise<Sources> {
  const byKey = new Map<string, SourceSummary>();
  const refused: { entry: RelatedEntry; error: KbindError }[] = [];
  const limit = pLimit(SIDE_BY_SIDE);
  const asked = pass.entries.flatMap((entry) => sourceQueries(entry).map((query) => ({ entry, query })));
  await limit.map(asked, async ({ entry, query }) => {
    try {
      const { route, source, namespace, world } = pass;
      const options = { ...query, namespace, signal: world.signal };
      for (const found of await everyPage(source.client, route.ref, options, summarySource(pass))) {
        if (found !== undefined) byKey.set(keyText(found.key), found);
      }
    } catch (error) {
      if (!isError(error, 'forbidden', 'invalid')) throw error;
      refused.push({ entry, error });
    }
  });
  return { byKey, refused };
}

const summarySource =
  ({ entries }: RoutePass) =>
  (object: KubeObject): SourceSummary | undefined =>
    isSelected(entries, object) ? { key: keyOf(object), hash: contentHash(contentOf(object)) } : undefined;

export interface CopyScope {
  readonly world: World;
  readonly route: Route;
  readonly target: Side;
  readonly namespace: string | undefined;
}

/**
 * What carries our labels on the target side. A consumer's managed objects are all ours. On a provider, those of this
 * consumer alone, and without their contents those that carry no consumer's label: made by the Go konnector.
 */
export async function readCopies({ world, route, target, namespace }: CopyScope): Promise<Map<string, CopySummary>> {
  const managed = `${MANAGED_LABEL}=${TRUE}`;
  const scope = { namespace, signal: world.signal };
  const { client } = target;
  const ours = target.which === 'consumer' ? managed : `${managed},${CONSUMER_CLUSTER_UID}=${world.cluster}`;
  const copies = await everyPage(client, route.ref, { ...scope, labelSelector: ours }, summaryCopy);
  if (target.which === 'provider') {
    const labelSelector = `${managed},!${CONSUMER_CLUSTER_UID}`;
    const { items } = await client.listAllMetadata(route.ref, { ...scope, labelSelector });
    copies.push(...items.map((item) => ({ key: keyOf(item), object: withoutFields(item), hash: undefined })));
  }
  return new Map(copies.map((copy) => [keyText(copy.key), copy]));
}

const summaryCopy = (object: KubeObject): CopySummary => ({
  key: keyOf(object),
  object: withoutFields(object),
  hash: contentHash(ownContentOf(object)),
});

function withoutFields({ apiVersion, kind, metadata }: MetaObject): MetaObject {
  const { managedFields: _managedFields, ...rest } = metadata;
  return { apiVersion, kind, metadata: rest };
}

/** What stands under names where no copy of ours was listed: metadata only, one request for each name. */
export async function lookUpTargets(pass: RoutePass, keys: readonly ObjectKey[]): Promise<Map<string, MetaObject>> {
  const { target, route, world } = pass;
  const namespaces = new Map<string, Set<string | undefined>>();
  for (const { namespace, name } of keys) namespaces.set(name, (namespaces.get(name) ?? new Set()).add(namespace));
  const found = new Map<string, MetaObject>();
  const limit = pLimit(SIDE_BY_SIDE);
  await limit.map([...namespaces], async ([name, wanted]) => {
    const [only] = wanted.size === 1 ? wanted : [pass.namespace];
    const options = { namespace: only, fieldSelector: `metadata.name=${name}`, signal: world.signal };
    const { items } = await target.client.listAllMetadata(route.ref, options);
    for (const item of items) found.set(keyText(keyOf(item)), withoutFields(item));
  });
  return found;
}
