import { resources, type KubeObject } from '../model/api.ts';
import { crdSpec } from '../model/crd.ts';
import { isError, KbindError } from '../model/errors.ts';
import type { Connection } from '../model/kinds.ts';
import { EXPORTED_LABEL, SCHEMA_HASH_ANNOTATION, TRUE } from '../model/markers.ts';
import type { Belief } from '../kube/types.ts';
import { schemaFromCrd, type ConsumerSchema } from '../schema/from-crd.ts';
import { createCrd, replaceCrd, specIsEqual, stampCrd } from './crd-writes.ts';
import {
  isInService,
  whatIsInstalled,
  whatToDoWithForeign,
  whatToInstall,
  type ConflictPolicy,
  type SchemaPolicy,
} from './what-to-install.ts';
import type { Side, World } from './world.ts';

/** One API that a binding requests or a Connection exports. */
export interface InstallRequest {
  /** The provider's side, opened with the Connection's credentials. */
  readonly provider: Side;
  readonly connection: Connection;
  /** `<plural>.<group>`. */
  readonly api: string;
  readonly policy: SchemaPolicy;
  readonly conflictPolicy: ConflictPolicy;
  /** The reads of Connection and binding that this rests on. */
  readonly belief?: Belief | undefined;
}

export const schemaStates = [
  /** Installed, ours, in service: instances can be synchronized. */
  'installed',
  /** Sent, and not in service yet: look again in a moment. */
  'establishing',
  /** The consumer CRD is being deleted: counts as missing. */
  'terminating',
  /** The consumer has no such CRD of ours and may not install one: somebody has to. */
  'missing',
  /** The provider does not offer it (now). */
  'not-exported',
  /** A CRD of that name and another spec belongs to somebody else. */
  'foreign',
  /** Another Connection came first. */
  'owned-by-another',
  /** The API server refuses the CRD, or its names. */
  'refused',
  /** 403 on either side. */
  'forbidden',
] as const;
export type SchemaState = (typeof schemaStates)[number];

export interface SchemaResult {
  readonly api: string;
  readonly state: SchemaState;
  /** For a condition: which object, why, what a person can do. Empty for a plain `installed`. */
  readonly message: string;
  /** The consumer CRD as it stands; absent where there is none (of ours). */
  readonly crd?: KubeObject | undefined;
  /** Hash recorded on the CRD that is installed. */
  readonly hash?: string | undefined;
  /** The server's words about an update that it refused: the old CRD stays, `SchemaInSync` is False. */
  readonly refusedUpdate?: string | undefined;
  /** Versions of the provider's CRD that the consumer does not get. */
  readonly droppedVersions?: readonly string[] | undefined;
}

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

/** The recorded hash on a consumer CRD. */
export const installedHash = (crd: KubeObject): string | undefined =>
  crd.metadata.annotations?.[SCHEMA_HASH_ANNOTATION];

/** True for a provider CRD that is offered to consumers. */
const isExported = (crd: KubeObject | undefined): crd is KubeObject =>
  crd?.metadata.labels?.[EXPORTED_LABEL] === TRUE && crdSpec(crd).versions.some((version) => version.served);

const answer = (
  { api }: InstallRequest,
  state: SchemaState,
  message: string,
  more: Partial<SchemaResult> = {},
): SchemaResult => ({ api, state, message, ...more });

async function stampOnly(world: World, request: InstallRequest): Promise<SchemaResult> {
  const { connection, api } = request;
  if (!connection.status.exportedAPIs?.some(({ name }) => name === api)) return notExported(request, undefined);
  return bring(world, request, undefined);
}

async function pullSchema(world: World, request: InstallRequest): Promise<SchemaResult> {
  const { provider, api } = request;
  const offered = await provider.client.find(resources.crds, { name: api }, { signal: world.signal });
  if (!isExported(offered)) return notExported(request, offered);
  return bring(world, request, schemaFromCrd(offered));
}

function notExported(request: InstallRequest, offered: KubeObject | undefined): SchemaResult {
  const { api } = request;
  if (offered?.metadata.labels?.[EXPORTED_LABEL] === TRUE) {
    return answer(request, 'not-exported', `${api} is exported, but its CustomResourceDefinition serves no version`);
  }
  return answer(request, 'not-exported', `${api} is not exported (a provider's CRD needs ${EXPORTED_LABEL}: "true")`);
}

/** The table: reads what is installed, decides, writes. */
async function bring(
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
  if (step === 'wait until it is gone') {
    return answer(
      request,
      'terminating',
      `CustomResourceDefinition ${api} is being deleted; it is installed again after`,
    );
  }
  if (installed.is === 'pinned elsewhere') {
    const message = `CustomResourceDefinition ${api} belongs to Connection ${installed.connection}, which came first; bind it through that one`;
    return answer(request, 'owned-by-another', message);
  }
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

async function create(world: World, request: InstallRequest, offered: ConsumerSchema): Promise<SchemaResult> {
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

/** Never Ready over a CRD that serves nothing yet, or whose names clash. */
function inService(request: InstallRequest, crd: KubeObject, offered: ConsumerSchema | undefined): SchemaResult {
  const { api } = request;
  const service = isInService(crd);
  const more = { crd, hash: installedHash(crd), droppedVersions: offered?.droppedVersions };
  if (service.is === 'established') return answer(request, 'installed', '', more);
  if (service.is === 'not yet') {
    return answer(request, 'establishing', `CustomResourceDefinition ${api} is not established yet`, more);
  }
  const message = `the names of CustomResourceDefinition ${api} are not accepted: ${service.message}`;
  return answer(request, 'refused', message, more);
}

/** The table never asks for what was not read; this says so to the compiler, and loudly to us if it ever does. */
function needed<T>(value: T | undefined, api: string): T {
  if (value === undefined) throw new KbindError('internal', 'the install table asked for what was not read', { api });
  return value;
}
