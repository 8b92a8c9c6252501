import { resources, type KubeObject } from '../model/api.ts';
import { crdSpec } from '../model/crd.ts';
import { isError, KbindError } from '../model/errors.ts';
import { EXPORTED_LABEL, TRUE } from '../model/markers.ts';
import { schemaFromCrd, type ConsumerSchema } from '../schema/from-crd.ts';
import { createCrd, replaceCrd, specIsEqual, stampCrd } from './crd-writes.ts';
import {
  answer,
  inService,
  outOfScope,
  ownedByAnother,
  terminating,
  type InstallRequest,
  type SchemaResult,
} from './schema-result.ts';
import { whatIsInstalled, whatToDoWithForeign, whatToInstall } from './what-to-install.ts';
import type { World } from './world.ts';

export {
  installedHash,
  schemaStates,
  type InstallRequest,
  type SchemaResult,
  type SchemaState,
} from './schema-result.ts';

/**
 * Brings the consumer CRD of one API of the CRD source to what spec §3 says. Writes nothing when nothing would change.
 * @throws KbindError `conflict` or `stale` (read again), and whatever is to be retried. A 403 is an answer, not an error.
 */
export async function installSchema(world: World, request: InstallRequest): Promise<SchemaResult> {
  try {
    return await (request.policy.pullPolicy === 'None' ? stampOnly(world, request) : pullSchema(world, request));
  } catch (error) {
    if (!isError(error, 'forbidden')) throw error;
    return answer(request, 'forbidden', error.message);
  }
}

/** True for a provider CRD that is offered to consumers. */
const isExported = (crd: KubeObject | undefined): crd is KubeObject =>
  crd?.metadata.labels?.[EXPORTED_LABEL] === TRUE && crdSpec(crd).versions.some((version) => version.served);

async function stampOnly(world: World, request: InstallRequest): Promise<SchemaResult> {
  const { connection, api } = request;
  const exported = connection.status.exportedAPIs?.find(({ name }) => name === api);
  if (exported === undefined) return notExported(request, undefined);
  return outOfScope(request, exported.scope) ?? bring(world, request, undefined);
}

async function pullSchema(world: World, request: InstallRequest): Promise<SchemaResult> {
  const { provider, api } = request;
  const offered = await provider.client.find(resources.crds, { name: api }, { signal: world.signal });
  if (!isExported(offered)) return notExported(request, offered);
  return outOfScope(request, crdSpec(offered).scope) ?? bring(world, request, schemaFromCrd(offered));
}

function notExported(request: InstallRequest, offered: KubeObject | undefined): SchemaResult {
  const { api } = request;
  if (offered?.metadata.labels?.[EXPORTED_LABEL] === TRUE) {
    return answer(request, 'not-exported', `${api} is exported, but its CustomResourceDefinition serves no version`);
  }
  return answer(request, 'not-exported', `${api} is not exported (a provider's CRD needs ${EXPORTED_LABEL}: "true")`);
}

/** The table: reads what is installed, decides, writes. `offered` may be undefined under `pullPolicy: None` only. */
export async function bring(
  world: World,
  request: InstallRequest,
  offered: ConsumerSchema | undefined,
): Promise<SchemaResult> {
  const { connection, policy, api } = request;
  const { name } = connection.metadata;
  const { value: crd } = await world.reads.crd(api);
  const installed = whatIsInstalled(crd, name);
  const step = whatToInstall(installed, policy, offered?.hash);
  world.trace.step(`schema of ${api}: ${installed.is}`, step);
  if (step === 'wait until somebody installs it') return answer(request, 'missing', missingMessage(api, name));
  if (step === 'wait until it is gone') return terminating(request);
  if (installed.is === 'pinned elsewhere') return ownedByAnother(request, installed.connection);
  if (step === 'create') return create(world, request, needed(offered, api));
  const present = needed(crd, api);
  if (step === 'keep') return inService(request, present, offered);
  if (step === 'stamp') return stamp(world, request, present, offered);
  if (step === 'replace') return replace(world, request, { crd: present, offered: needed(offered, api) });
  return compare(world, request, { crd: present, offered: needed(offered, api) });
}

const missingMessage = (api: string, connection: string): string =>
  `the consumer has no CustomResourceDefinition ${api}, and pullPolicy None of Connection ${connection} installs none: create it`;

interface Update {
  readonly crd: KubeObject;
  readonly offered: ConsumerSchema;
}

async function compare(world: World, request: InstallRequest, update: Update): Promise<SchemaResult> {
  const { crd, offered } = update;
  const equal = await specIsEqual(world, crd, offered);
  const step = whatToDoWithForeign(equal, request.conflictPolicy);
  world.trace.step(`schema of ${request.api}: ${equal ? 'equal' : 'different'}`, step);
  if (step === 'stamp') return stamp(world, request, crd, offered);
  if (step === 'replace') return replace(world, request, update);
  const message = `CustomResourceDefinition ${request.api} exists with another spec and is not managed by Connection ${request.connection.metadata.name}: delete it, make it equal, or set conflictPolicy: Adopt`;
  return answer(request, 'foreign', message);
}

/** Creates the CRD; what the consumer refuses is an answer. */
export async function create(world: World, request: InstallRequest, offered: ConsumerSchema): Promise<SchemaResult> {
  try {
    return inService(request, await createCrd(world, request, offered), offered);
  } catch (error) {
    if (!isError(error, 'invalid')) throw error;
    return answer(request, 'refused', `the consumer refuses CustomResourceDefinition ${request.api}: ${error.message}`);
  }
}

/** What the API server refuses leaves the old CRD in place and changes nothing else. */
async function replace(world: World, request: InstallRequest, { crd, offered }: Update): Promise<SchemaResult> {
  try {
    return inService(request, await replaceCrd(world, request, crd, offered), offered);
  } catch (error) {
    if (!isError(error, 'invalid')) throw error;
    const refusedUpdate = `the consumer refuses the provider's new schema of ${request.api}: ${error.message}`;
    const ours = whatIsInstalled(crd, request.connection.metadata.name).is === 'ours';
    if (!ours) return answer(request, 'refused', refusedUpdate, { refusedUpdate });
    return { ...inService(request, crd, offered), message: refusedUpdate, refusedUpdate };
  }
}

async function stamp(
  world: World,
  request: InstallRequest,
  crd: KubeObject,
  offered: ConsumerSchema | undefined,
): Promise<SchemaResult> {
  return inService(request, await stampCrd(world, request, crd, offered?.hash), offered);
}

/** The table never asks for what was not read; this says so to the compiler, and loudly to us if it ever does. */
function needed<T>(value: T | undefined, api: string): T {
  if (value === undefined) throw new KbindError('internal', 'the install table asked for what was not read', { api });
  return value;
}
