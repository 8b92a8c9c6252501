import { openApiDocuments } from '../../kube/openapi.ts';
import { schemaFromCrd } from '../../schema/from-crd.ts';
import type { ConditionReason, WantedCondition } from '../../model/conditions.ts';
import { isDeleting } from '../../model/crd.ts';
import { isError } from '../../model/errors.ts';
import type { KubeObject } from '../../model/api.ts';
import type { Connection } from '../../model/kinds.ts';
import { installSchema } from '../schema-install.ts';
import { installSynthesized } from '../schema-synthesis.ts';
import { installedHash, type InstallRequest, type SchemaResult, type SchemaState } from '../schema-result.ts';
import { isInService, whatIsInstalled } from '../what-to-install.ts';
import type { Side, World } from '../world.ts';
import { nodes } from './chart.ts';
import type { Exports } from './discovery.ts';
import { believeAgain } from './status.ts';
import { condition } from './what-was-found.ts';

/** Brings in the CRD of one API. */
type Installer = (world: World, request: InstallRequest) => Promise<SchemaResult>;

/** By source. The pass of a Connection reads each OpenAPI document once, however many APIs it describes. */
function installerFor(world: World, { provider, exports }: Pulling): Installer {
  if (exports.source === 'CRD') return installSchema;
  const documents = openApiDocuments(provider.client, { signal: world.signal });
  return (_world, request) =>
    installSynthesized(world, request, { documents, served: exports.served.get(request.api) ?? [] });
}

/** How the schemas stand after this pass. */
export interface SchemasOutcome {
  readonly condition: WantedCondition;
  /** Something is on its way and worth another look soon. */
  readonly unsettled: boolean;
}

interface Pulling {
  readonly connection: Connection;
  readonly provider: Side;
  readonly exports: Exports;
}

/**
 * Installs every exported schema under `pullPolicy: All`, and otherwise sees whether those that bindings ask for are
 * installed and follow the provider's (spec §2.5). One bad API holds up no other, and not the Connection (C8).
 */
export async function bringSchemas(world: World, pulling: Pulling): Promise<SchemasOutcome> {
  const { connection, exports } = pulling;
  const wanted = await whatShouldBeInstalled(world, connection, exports);
  const { value: managed } = await world.reads.managedCrds();
  const installed = new Map(managed.map((crd) => [crd.metadata.name, crd]));
  const install = installerFor(world, pulling);
  const results: SchemaResult[] = [];
  for (const api of wanted) {
    const settled = howItStands(pulling, api, installed.get(api));
    results.push(settled ?? (await bring(world, pulling, { api, install })));
  }
  world.trace.step(nodes.schemas, `${results.length} of ${exports.apis.length}`);
  return { condition: schemaInSync(results), unsettled: results.some(({ state }) => isUnderWay(state)) };
}

/** Names of exports, all of them or those that live bindings list. */
async function whatShouldBeInstalled(world: World, connection: Connection, { apis }: Exports): Promise<string[]> {
  const exported = apis.map(({ name }) => name);
  if (connection.spec.schema.pullPolicy === 'All') return exported;
  const [clusterBindings, bindings] = await Promise.all([world.reads.clusterBindings(), world.reads.bindings()]);
  const listed = [...clusterBindings.value, ...bindings.value]
    .filter((binding) => binding.spec.connectionRef.name === connection.metadata.name && !isDeleting(binding))
    .flatMap(({ spec }) => spec.apis.map(({ name }) => name));
  return exported.filter((name) => listed.includes(name));
}

/** The answer that needs no request: as it should be, or none of this controller's business; undefined: bring it. */
function howItStands(
  { connection, exports }: Pulling,
  api: string,
  crd: KubeObject | undefined,
): SchemaResult | undefined {
  const { pullPolicy, updatePolicy } = connection.spec.schema;
  const ours = crd !== undefined && whatIsInstalled(crd, connection.metadata.name).is === 'ours';
  if (!ours) return pullPolicy === 'All' ? undefined : notOurs(connection, api);
  const follows = pullPolicy === 'None' || updatePolicy === 'Once' || installedHash(crd) === offeredHash(exports, api);
  return follows && isInService(crd).is === 'established' ? { api, state: 'installed', message: '', crd } : undefined;
}

/** Bindings bring it in, and say what keeps them from it. */
const notOurs = (connection: Connection, api: string): SchemaResult => ({
  api,
  state: 'missing',
  message: `CustomResourceDefinition ${api} is not installed, or not managed by Connection ${connection.metadata.name}: its bindings say why`,
});

/** Hash of what a provider's CRD offers; of the OpenAPI source it takes documents to tell. */
function offeredHash({ crds }: Exports, api: string): string | undefined {
  const offered = crds.find(({ metadata }) => metadata.name === api);
  return offered === undefined ? undefined : schemaFromCrd(offered).hash;
}

async function bring(
  world: World,
  { connection, provider }: Pulling,
  { api, install }: { readonly api: string; readonly install: Installer },
): Promise<SchemaResult> {
  const request: InstallRequest = {
    provider,
    connection,
    api,
    policy: connection.spec.schema,
    conflictPolicy: 'Fail',
    belief: await believeAgain(world, { connection }),
  };
  try {
    return await install(world, request);
  } catch (error) {
    if (!isError(error, 'misconfigured', 'invalid')) throw error;
    return { api, state: 'refused', message: error.message };
  }
}

const isUnderWay = (state: SchemaState): boolean => state === 'establishing' || state === 'terminating';

const REASONS: Readonly<Partial<Record<SchemaState, ConditionReason>>> = {
  foreign: 'ForeignObjectExists',
  'owned-by-another': 'OwnedByAnother',
  forbidden: 'Forbidden',
  'not-exported': 'APINotExported',
};

/** `SchemaInSync`: all that should be installed are, and follow. Names each that is not. */
export function schemaInSync(results: readonly SchemaResult[]): WantedCondition {
  const behind = results.filter(({ state, refusedUpdate }) => state !== 'installed' || refusedUpdate !== undefined);
  const [first] = behind;
  if (first === undefined) {
    const message =
      results.length === 0 ? 'no schema needs to be installed' : `${results.length} schemas are installed`;
    return condition('SchemaInSync', 'True', 'AsExpected', message);
  }
  const message = behind.map((result) => result.refusedUpdate ?? result.message).join('; ');
  return condition('SchemaInSync', 'False', REASONS[first.state] ?? 'Pending', message);
}
