import { servedVersions, type ServedResource } from '../kube/discovery.ts';
import { openApiDocuments, type OpenApiDocuments } from '../kube/openapi.ts';
import { isError, KbindError } from '../model/errors.ts';
import type { ExportedApi } from '../model/kinds.ts';
import type { ConsumerSchema } from '../schema/from-crd.ts';
import { canBeDefined, schemaFromOpenApi } from '../schema/from-openapi.ts';
import { readOpenApiDocument } from '../schema/openapi-document.ts';
import { bring, create } from './schema-install.ts';
import { answer, inService, type InstallRequest, type SchemaResult } from './schema-result.ts';
import { whatIsInstalled } from './what-to-install.ts';
import type { Side, World } from './world.ts';

/** The consumer's CRDs of the OpenAPI source, made from what the provider's discovery and documents tell (spec §3). */

export interface Sources {
  readonly documents: OpenApiDocuments;
  /** The API in each of its versions, the preferred one first; empty: discovery cannot tell now. */
  readonly served: readonly ServedResource[];
}

/**
 * Brings a synthesized CRD to what spec §3 says, for the Connection controller: installs it, and lets it follow. Where the
 * provider cannot tell now, what is installed stays.
 */
export async function installSynthesized(
  world: World,
  request: InstallRequest,
  sources: Sources,
): Promise<SchemaResult> {
  return asAnswer(request, async () => {
    if (sources.served.length === 0) return untold(world, request);
    const none = request.policy.pullPolicy === 'None';
    return bring(world, request, none ? undefined : await synthesize(request.api, sources));
  });
}

/** Synthesizes and installs a CRD that is missing, for a binding. */
export async function installMissing(
  world: World,
  request: InstallRequest,
  { group, resource }: ExportedApi,
): Promise<SchemaResult> {
  const { api, provider } = request;
  return asAnswer(request, async () => {
    const sources = await lookUp(provider, { group, resource }, world.signal);
    if (sources.served.length === 0) {
      return answer(request, 'not-exported', `${api} is no longer served by the provider`);
    }
    return create(world, request, await synthesize(api, sources));
  });
}

/** One bad API is one bad answer: a 403 and a document that is of no use concern nobody else (C8). */
async function asAnswer(request: InstallRequest, install: () => Promise<SchemaResult>): Promise<SchemaResult> {
  try {
    return await install();
  } catch (error) {
    if (isError(error, 'forbidden')) return answer(request, 'forbidden', error.message);
    if (!isError(error, 'invalid')) throw error;
    return answer(request, 'refused', `${request.api} is left out: ${error.message}`);
  }
}

async function untold(world: World, request: InstallRequest): Promise<SchemaResult> {
  const { api, connection } = request;
  const message = `the provider cannot tell what ${api} looks like now (an aggregated API may be down)`;
  const { value: crd } = await world.reads.crd(api);
  if (crd === undefined || whatIsInstalled(crd, connection.metadata.name).is !== 'ours') {
    return answer(request, 'missing', message);
  }
  return inService(request, crd);
}

async function lookUp(
  { client }: Side,
  api: Pick<ExportedApi, 'group' | 'resource'>,
  signal: AbortSignal,
): Promise<Sources> {
  const versions = await servedVersions(client, api, { signal });
  return { documents: openApiDocuments(client, { signal }), served: versions.filter(canBeDefined) };
}

/** @throws KbindError `invalid` when a document of one of its versions is of no use. */
async function synthesize(api: string, { documents, served }: Sources): Promise<ConsumerSchema> {
  const [preferred] = served;
  if (preferred === undefined) throw new KbindError('internal', 'nothing is served to synthesize from', { api });
  const versions = await Promise.all(
    served.map(async ({ group, version, status }) => {
      const document = await documents.of({ group, version });
      return { name: version, status, document: document === undefined ? undefined : readOpenApiDocument(document) };
    }),
  );
  return schemaFromOpenApi({ ...preferred, versions, preferredVersion: preferred.version });
}
