import { isError, KbindError } from '../model/errors.ts';
import type { ResourceRef } from '../model/api.ts';
import { isMap, type JsonMap } from './raw-json.ts';
import type { KubeReads, ReadOptions } from './types.ts';

/** One group as `/apis` shows it. */
export interface GroupVersions {
  readonly group: string;
  /** In the server's order of preference. */
  readonly versions: readonly string[];
  readonly preferredVersion: string;
}

/** A resource in one of its versions. */
export interface ServedResource extends ResourceRef {
  readonly verbs: readonly string[];
  /** Whether the version has a status subresource. */
  readonly status: boolean;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly singular: string;
}

/** A group version that the server lists and could not tell about: an aggregated API whose server is away. */
export interface DiscoveryFailure {
  readonly group: string;
  readonly version: string;
  readonly error: KbindError;
}

export interface Discovered {
  readonly groups: readonly GroupVersions[];
  readonly resources: readonly ServedResource[];
  /** Not empty: the resources are not all there are. */
  readonly failures: readonly DiscoveryFailure[];
}

type Client = Pick<KubeReads, 'getPath'>;

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];
const mapsOf = (value: unknown): JsonMap[] => (Array.isArray(value) ? value.filter(isMap) : []);

/** Names of all groups but the core one, with their versions: one request. */
export async function discoverGroups(
  client: Client,
  options: ReadOptions = {},
): Promise<{ readonly groups: readonly GroupVersions[] }> {
  const answer = await client.getPath('/apis', options);
  if (!isMap(answer) || !Array.isArray(answer['groups'])) {
    throw new KbindError('unavailable', 'get /apis: the answer is no list of groups');
  }
  return { groups: mapsOf(answer['groups']).map(toGroup) };
}

/** Versions of one group, or undefined when it is not served. */
export async function discoverGroup(
  client: Client,
  group: string,
  options: ReadOptions = {},
): Promise<GroupVersions | undefined> {
  if (group === '') return { group, versions: ['v1'], preferredVersion: 'v1' };
  try {
    const answer = await client.getPath(`/apis/${encodeURIComponent(group)}`, options);
    return isMap(answer) ? toGroup(answer) : undefined;
  } catch (error) {
    if (isError(error, 'unserved')) return undefined;
    throw error;
  }
}

function toGroup(value: JsonMap): GroupVersions {
  const versions = mapsOf(value['versions']).map(({ version }) => textOf(version));
  const preferred = isMap(value['preferredVersion']) ? textOf(value['preferredVersion']['version']) : '';
  return {
    group: textOf(value['name']),
    versions,
    preferredVersion: preferred === '' ? (versions[0] ?? '') : preferred,
  };
}

/** The resources of one group version; empty when it is not served. */
export async function discoverVersion(
  client: Client,
  { group, version }: { readonly group: string; readonly version: string },
  options: ReadOptions = {},
): Promise<readonly ServedResource[]> {
  const prefix = group === '' ? '/api' : `/apis/${encodeURIComponent(group)}`;
  try {
    const answer = await client.getPath(`${prefix}/${encodeURIComponent(version)}`, options);
    return toResources(isMap(answer) ? mapsOf(answer['resources']) : [], { group, version });
  } catch (error) {
    if (isError(error, 'unserved')) return [];
    throw error;
  }
}

function toResources(
  entries: readonly JsonMap[],
  { group, version }: { readonly group: string; readonly version: string },
): ServedResource[] {
  const names = new Set(entries.map(({ name }) => textOf(name)));
  return entries
    .filter(({ name }) => textOf(name) !== '' && !textOf(name).includes('/'))
    .map((entry) => ({
      group,
      version,
      resource: textOf(entry['name']),
      kind: textOf(entry['kind']),
      singular: textOf(entry['singularName']),
      namespaced: entry['namespaced'] === true,
      verbs: textsOf(entry['verbs']),
      shortNames: textsOf(entry['shortNames']),
      categories: textsOf(entry['categories']),
      status: names.has(`${textOf(entry['name'])}/status`),
    }));
}

/**
 * Groups, versions and resources that the server offers. A group version that fails (its aggregated server is away) is
 * reported beside the others; a failure of the list of groups itself, and one that every request would meet (the
 * credential, the network, an abort), is thrown. `wants` chooses the groups to look into.
 */
export async function discoverApis(
  client: Client,
  options: ReadOptions & { readonly wants?: ((group: string) => boolean) | undefined } = {},
): Promise<Discovered> {
  const { wants = () => true, signal } = options;
  const all = await discoverGroups(client, { signal });
  const groups = all.groups.filter(({ group }) => wants(group));
  const looks = groups.flatMap(({ group, versions }) =>
    versions.map((version) => lookInto(client, { group, version }, { signal })),
  );
  const answers = await Promise.all(looks);
  return {
    groups,
    resources: answers.flatMap((answer) => ('error' in answer ? [] : answer.found)),
    failures: answers.filter((answer) => 'error' in answer),
  };
}

async function lookInto(
  client: Client,
  at: { readonly group: string; readonly version: string },
  options: ReadOptions,
): Promise<DiscoveryFailure | { readonly found: readonly ServedResource[] }> {
  try {
    return { found: await discoverVersion(client, at, options) };
  } catch (error) {
    if (!isError(error, 'unavailable', 'invalid') || error.details.status === undefined) throw error;
    return { ...at, error };
  }
}

/** Which versions of a resource are served, the preferred one first. Empty: not served. */
export async function servedVersions(
  client: Client,
  api: Pick<ResourceRef, 'group' | 'resource'>,
  options: ReadOptions = {},
): Promise<readonly ServedResource[]> {
  const group = await discoverGroup(client, api.group, options);
  if (group === undefined) return [];
  const ordered = [group.preferredVersion, ...group.versions.filter((one) => one !== group.preferredVersion)];
  const lists = await Promise.all(
    ordered.map((version) => discoverVersion(client, { group: api.group, version }, options)),
  );
  return lists.flat().filter(({ resource }) => resource === api.resource);
}
