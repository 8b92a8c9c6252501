import pLimit from 'p-limit';
import { keyOf, keyText, type MetaObject } from '../../model/api.ts';
import { instanceResource } from '../../model/crd.ts';
import { isError, isFillingCache } from '../../model/errors.ts';
import { CONFLICT_MARKER, TRUE } from '../../model/markers.ts';
import { installSchema } from '../schema-install.ts';
import { readSchema } from '../schema-read.ts';
import type { InstallRequest, SchemaResult } from '../schema-result.ts';
import type { Side, World } from '../world.ts';
import { isAskedNow, whyNotWatched } from './may-it-watch.ts';
import { scopeOf, type Pass } from './target.ts';
import { untilServed } from './until-served.ts';

/** APIs of one binding that are worked on side by side. */
const SIDE_BY_SIDE = 8;

/** An instance that carries the conflict annotation. */
export interface ConflictingInstance {
  /** `namespace/name`. */
  readonly key: string;
  /** The annotation: `ForeignObjectExists` or `OwnedByAnother`. */
  readonly reason: string;
}

/** What became of one requested API. */
export interface ApiResult extends SchemaResult {
  readonly conflicts: readonly ConflictingInstance[];
  /** What the provider does not permit although the API is in service. */
  readonly denied?: string | undefined;
}

/** For each requested API: export check, schema, conflict annotations; in the order of names. */
export async function processApis(world: World, pass: Pass, provider: Side): Promise<ApiResult[]> {
  const { spec } = pass.target.binding;
  const names = [...new Set(spec.apis.map(({ name }) => name))].sort();
  const limit = pLimit(SIDE_BY_SIDE);
  return limit.map(names, (api) => processApi(world, pass, installRequest(pass, provider, api)));
}

function installRequest({ target, connection, belief }: Pass, provider: Side, api: string): InstallRequest {
  const { kind, spec } = target.binding;
  return {
    provider,
    connection,
    api,
    policy: connection.spec.schema,
    conflictPolicy: spec.conflictPolicy,
    namespacedOnly: kind === 'Binding',
    belief,
  };
}

async function processApi(world: World, pass: Pass, request: InstallRequest): Promise<ApiResult> {
  const openApi = pass.connection.status.activeSchemaSource === 'OpenAPI';
  const result = await (openApi ? readSchema(world, request) : installSchema(world, request));
  const look = (seen: SchemaResult): Promise<ApiResult> => countConflicts(world, pass, seen);
  const counted = await untilServed(world, request, { first: result, look });
  return { ...counted, denied: await whatIsDenied(world, pass, request.provider, counted) };
}

async function whatIsDenied(
  world: World,
  { target }: Pass,
  provider: Side,
  { state, crd }: SchemaResult,
): Promise<string | undefined> {
  const ref = state === 'installed' && crd !== undefined ? instanceResource(crd) : undefined;
  return ref === undefined || !isAskedNow(target.binding) ? undefined : whyNotWatched(world, provider, ref);
}

/** Counts the marked instances of an API that is in service, by a list that the label selects. */
async function countConflicts(world: World, pass: Pass, result: SchemaResult): Promise<ApiResult> {
  const ref = result.state === 'installed' && result.crd !== undefined ? instanceResource(result.crd) : undefined;
  if (ref === undefined) return { ...result, conflicts: [] };
  try {
    const { items } = await world.consumer.client.listAllMetadata(ref, {
      labelSelector: `${CONFLICT_MARKER}=${TRUE}`,
      namespace: scopeOf(pass.target.binding),
      signal: world.signal,
    });
    return { ...result, conflicts: items.flatMap(conflictOf) };
  } catch (error) {
    if (isError(error, 'forbidden')) return { ...result, state: 'forbidden', message: error.message, conflicts: [] };
    if (!isError(error, 'unserved') && !isFillingCache(error)) throw error;
    const message = `${result.api} is established, but the API server does not serve it yet`;
    return { ...result, state: 'establishing', message, conflicts: [] };
  }
}

/** The annotation is the marker; the label only makes the list short. */
function conflictOf(item: MetaObject): ConflictingInstance[] {
  const reason = item.metadata.annotations?.[CONFLICT_MARKER];
  return reason === undefined ? [] : [{ key: keyText(keyOf(item)), reason }];
}
