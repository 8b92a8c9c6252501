import { CONNECTION_ANNOTATION, MANAGED_LABEL } from '../model/markers.ts';
import {
  answer,
  inService,
  outOfScope,
  ownedByAnother,
  terminating,
  type InstallRequest,
  type SchemaResult,
} from './schema-result.ts';
import { whatIsInstalled } from './what-to-install.ts';
import type { World } from './world.ts';

/**
 * The consumer CRD of an API of the OpenAPI source: read, never refreshed, by the binding controller (spec §3). A missing one
 * is waited for.
 */
export async function readSchema(world: World, request: InstallRequest): Promise<SchemaResult> {
  const { api, connection } = request;
  const exported = connection.status.exportedAPIs?.find(({ name }) => name === api);
  if (exported === undefined) return answer(request, 'not-exported', `${api} is not served by the provider`);
  const unusable = outOfScope(request, exported.scope);
  if (unusable !== undefined) return unusable;
  const { value: crd } = await world.reads.crd(api);
  const { name } = connection.metadata;
  const installed = whatIsInstalled(crd, name);
  world.trace.step(`schema of ${api}: ${installed.is}`, 'read');
  if (installed.is === 'pinned elsewhere') return ownedByAnother(request, installed.connection);
  if (installed.is === 'deleting') return terminating(request);
  if (crd === undefined)
    return answer(request, 'missing', `waiting for a CustomResourceDefinition ${api}: create it, ${markersText(name)}`);
  if (installed.is === 'ours') return inService(request, crd);
  return answer(
    request,
    'missing',
    `CustomResourceDefinition ${api} is not managed by Connection ${name}: set ${markersText(name)}`,
  );
}

const markersText = (connection: string): string =>
  `label ${MANAGED_LABEL}: "true" and annotation ${CONNECTION_ANNOTATION}: ${connection}`;
