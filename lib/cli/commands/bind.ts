import { Option, type Command } from 'commander';
import { stringify } from 'yaml';
import { apiName, keyText, resources, type ResourceRef } from '../../model/api.ts';
import { isError, toKbindError } from '../../model/errors.ts';
import type { KubeClient, SentObject } from '../../kube/types.ts';
import { parseForeignKubeconfig } from '../../kube/kubeconfig.ts';
import { bindingSpecSchema, conflictPolicies, connectionSpecSchema, type ExportedApi } from '../../model/kinds.ts';
import { discoverExports, listExportedCrds } from '../../reconcile/connection/exports.ts';
import { withClient } from '../clients.ts';
import { CliError } from '../exit-codes.ts';
import { readKubeconfig } from '../fleet/directory-fleet.ts';
import { table } from '../output.ts';
import { answer, runIn, withExamples, type Host, type Session } from '../session.ts';
import { confirm, withProgress } from '../terminal.ts';

interface BindOptions {
  readonly provider: string;
  readonly list: boolean;
  readonly api?: string[];
  readonly connection: string;
  readonly secretNamespace: string;
  readonly in?: string;
  readonly conflictPolicy: 'Fail' | 'Adopt';
  readonly dryRun: boolean;
  readonly yes: boolean;
}

export function addBind(program: Command, host: Host): void {
  const command = program
    .command('bind')
    .description(
      "Binds a provider's APIs in a cluster: writes the kubeconfig's Secret, a Connection and a ClusterBinding (or Binding). " +
        'Everything is tried with a dry run first.',
    )
    .argument('<cluster>', 'name or UID of the consumer')
    .requiredOption('--provider <kubeconfig>', "the provider's self-contained kubeconfig")
    .option('--list', 'only list what the provider exports', false)
    .option('--api <api...>', 'exported APIs to bind, <plural>.<group>')
    .option('--connection <name>', 'what the Connection, the Secret and the binding are called', 'provider')
    .option('--secret-namespace <namespace>', 'where the Secret goes', 'kbind')
    .option('--in <namespace>', 'a Binding in this namespace, instead of a ClusterBinding')
    .addOption(
      new Option('--conflict-policy <policy>', 'what becomes of objects that the provider has already')
        .choices([...conflictPolicies])
        .default('Fail'),
    )
    .option('--dry-run', 'write nothing: print what would be written', false)
    .option('--yes', 'do not ask', false)
    .action(runIn<BindOptions>(host, bind));
  withExamples(
    command,
    { args: 'bind shop --provider provider.yaml --list', says: 'what the provider exports' },
    {
      args: 'bind shop --provider provider.yaml --api widgets.example.org --connection demo2 --dry-run',
      says: 'what would be written',
    },
  );
}

async function bind(session: Session, [name = '']: readonly string[], options: BindOptions) {
  const { cell, terminal, limit } = session;
  const { target, name: cluster } = await cell.fleet.open(name, limit());
  const kubeconfig = await readKubeconfig(options.provider);
  const provider = parseForeignKubeconfig(kubeconfig, { allowLoopback: cell.app.config.allowLoopback });
  const exports = await withProgress(terminal, 'asking the provider', () =>
    withClient(session, provider, (client) => exportsOf(client, limit())),
  );
  if (options.list) return listed(options.provider, exports);
  const objects = bundle(options, kubeconfig, chosenApis(options, exports));
  return withClient(session, target, async (client) => {
    const planned = await plan(client, objects, limit());
    const todo = planned.filter(({ action }) => action !== 'unchanged');
    if (!options.dryRun && todo.length > 0) {
      const names = todo.map(({ object }) => `${object.kind} ${nameOf(object)}`).join(', ');
      await confirm(terminal, `Create in ${cluster}: ${names}?`, options.yes);
      for (const { ref, object } of todo) await client.create(ref, object, { signal: limit() });
    }
    const data = {
      cluster,
      dryRun: options.dryRun,
      objects: planned.map(({ object, action }) => ({ kind: object.kind, name: nameOf(object), action })),
    };
    const lines = data.objects.map(
      (one) => `${one.kind} ${one.name}: ${options.dryRun && one.action === 'create' ? 'would create' : one.action}`,
    );
    const yaml = options.dryRun
      ? [
          todo
            .map(({ object }) => stringify(masked(object)))
            .join('---\n')
            .trimEnd(),
        ]
      : [];
    return answer('bind', data, { text: [...lines, ...yaml].join('\n'), names: data.objects.map((one) => one.name) });
  });
}

/** By CRD where that is allowed and brings something, by discovery otherwise: as a Connection's source Auto does. */
async function exportsOf(client: KubeClient, signal: AbortSignal): Promise<readonly ExportedApi[]> {
  const byCrd = await listExportedCrds({ client, signal }).catch((error: unknown) => {
    if (isError(error, 'forbidden', 'unserved', 'absent')) return undefined;
    throw error;
  });
  if (byCrd !== undefined && byCrd.apis.length > 0) return byCrd.apis;
  return (await discoverExports({ client, signal })).apis;
}

function listed(provider: string, exports: readonly ExportedApi[]) {
  const apis = exports.map(({ name, scope, versions }) => ({ name, scope, versions: [...versions] }));
  const rows = apis.map(({ name, scope, versions }) => [name, scope, versions.join(', ')]);
  const text = table(['API', 'SCOPE', 'VERSIONS'], rows, 'The provider exports nothing.');
  return answer('bind --list', { provider, apis }, { text, names: apis.map(({ name }) => name) });
}

function chosenApis({ api = [] }: BindOptions, exports: readonly ExportedApi[]): readonly string[] {
  if (api.length === 0) throw new CliError('usage', 'which APIs? Say --api, or --list to see them');
  const missing = api.filter((name) => !exports.some((one) => one.name === name));
  if (missing.length > 0) throw new CliError('usage', `the provider does not export ${missing.join(', ')}; see --list`);
  return api;
}

interface Planned {
  readonly ref: ResourceRef;
  readonly object: SentObject;
}

const GROUP_VERSION = 'core.kbind.io/v1alpha1';

/** In the order in which they are needed. */
function bundle(options: BindOptions, kubeconfig: string, apis: readonly string[]): Planned[] {
  const { connection: name, secretNamespace: namespace } = options;
  const secret = { namespace, name: `${name}-kubeconfig`, key: 'kubeconfig' };
  const spec = { kubeconfigSecretRef: secret };
  const bindingSpec = {
    connectionRef: { name },
    apis: apis.map((api) => ({ name: api })),
    conflictPolicy: options.conflictPolicy,
  };
  connectionSpecSchema.parse(spec);
  bindingSpecSchema.parse(bindingSpec);
  const data = { kubeconfig: Buffer.from(kubeconfig).toString('base64') };
  const inNamespace = options.in === undefined ? {} : { namespace: options.in };
  const ref = options.in === undefined ? resources.clusterBindings : resources.bindings;
  return [
    { ref: resources.namespaces, object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } } },
    {
      ref: resources.secrets,
      object: { apiVersion: 'v1', kind: 'Secret', metadata: { namespace, name: secret.name }, data },
    },
    { ref: resources.connections, object: { apiVersion: GROUP_VERSION, kind: 'Connection', metadata: { name }, spec } },
    {
      ref,
      object: { apiVersion: GROUP_VERSION, kind: ref.kind, metadata: { ...inNamespace, name }, spec: bindingSpec },
    },
  ];
}

const nameOf = ({ metadata: { namespace, name = '' } }: SentObject): string => keyText({ namespace, name });

interface Tried extends Planned {
  readonly action: 'create' | 'unchanged';
}

/**
 * Tries each object with a dry run; one that is there already is left as it is, unless it says something else.
 * @throws CliError `refused` for an object that is there and differs, and for one that the server refuses
 */
async function plan(client: KubeClient, objects: readonly Planned[], signal: AbortSignal): Promise<Tried[]> {
  const planned: Tried[] = [];
  for (const { ref, object } of objects) {
    const { namespace, name = '' } = object.metadata;
    const present = await client.find(ref, { namespace, name }, { signal });
    if (present === undefined) {
      await tryCreate(client, { ref, object }, signal);
      planned.push({ ref, object, action: 'create' });
    } else {
      planned.push({ ref, object, action: 'unchanged' });
      const wanted = ref.resource === 'secrets' ? object['data'] : object['spec'];
      const there = ref.resource === 'secrets' ? present['data'] : present.spec;
      if (!holds(there, wanted)) {
        throw new CliError('refused', `${object.kind} ${nameOf(object)} is there already and says something else`);
      }
    }
  }
  return planned;
}

/** Everything that is wanted is there; defaults that the server added do not count. */
function holds(present: unknown, wanted: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return wanted === undefined || present === wanted;
  if (typeof present !== 'object' || present === null) return false;
  const entries = Object.entries(wanted);
  const sameLength = !Array.isArray(wanted) || (present as readonly unknown[]).length === wanted.length;
  return sameLength && entries.every(([key, value]) => holds((present as Record<string, unknown>)[key], value));
}

async function tryCreate(client: KubeClient, { ref, object }: Planned, signal: AbortSignal): Promise<void> {
  try {
    await client.create(ref, object, { signal, dryRun: true, strict: true });
  } catch (thrown) {
    const error = toKbindError(thrown);
    // Its namespace is only about to be made.
    if (error.errorClass === 'namespace-missing' || (error.errorClass === 'absent' && ref.namespaced)) return;
    throw new CliError('refused', `${apiName(ref)} ${nameOf(object)}: ${error.message}`);
  }
}

const masked = (object: SentObject): SentObject =>
  'data' in object ? { ...object, data: { kubeconfig: '•••' } } : object;
