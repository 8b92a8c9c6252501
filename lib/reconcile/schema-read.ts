import type { KubeObject } from '../model/api.ts';
import { CONNECTION_ANNOTATION, MANAGED_LABEL, TRUE } from '../model/markers.ts';
import {
  answer,
  inService,
  outOfScope,
  ownedByAnother,
  terminating,
  type InstallRequest,
  type SchemaResult,
} from './schema-result.ts';
import { installMissing } from './schema-synthesis.ts';
import { whatIsInstalled } from './what-to-install.ts';
import type { World } from './world.ts';

/**
 * The consumer CRD of an API of the OpenAPI source: read, never refreshed, by the binding controller (spec §3). A missing one
 * is synthesized, or waited for under `pullPolicy: None`.
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
  if (crd === undefined) {
    if (request.policy.pullPolicy !== 'None') return installMissing(world, request, exported);
    return answer(
      request,
      'missing',
      `waiting for a CustomResourceDefinition ${api}: create it, with ${markersText(name)}`,
    );
  }
  if (installed.is === 'ours') return inService(request, crd);
  return answer(
    request,
    'missing',
    `CustomResourceDefinition ${api} exists, but is not managed by Connection ${name}: set ${markersText(name, crd)}`,
  );
}

/** The markers that it takes, without those that are there already. */
function markersText(connection: string, crd?: KubeObject): string {
  const labelled = crd?.metadata.labels?.[MANAGED_LABEL] === TRUE;
  const pinned = crd?.metadata.annotations?.[CONNECTION_ANNOTATION] === connection;
  const missing = [
    ...(labelled ? [] : [`label ${MANAGED_LABEL}: "${TRUE}"`]),
    ...(pinned ? [] : [`annotation ${CONNECTION_ANNOTATION}: ${connection}`]),
  ];
  return missing.join(' and ');
}
