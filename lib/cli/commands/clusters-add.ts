import { InvalidArgumentError, type Command } from 'commander';
import { withClient } from '../clients.ts';
import { CliError } from '../exit-codes.ts';
import type { NewReach } from '../fleet/fleet.ts';
import { holderIn, installCrds, preflight } from '../preflight.ts';
import { answer, runIn, withExamples, type Host, type Session } from '../session.ts';
import { withProgress } from '../terminal.ts';

interface AddOptions {
  readonly kubeconfig?: string;
  readonly secretArn?: string;
  readonly eks?: string;
  readonly eksRegion?: string;
  readonly roleArn?: string;
  readonly externalId?: string;
  readonly ingestKeyArn?: string;
  readonly label?: Readonly<Record<string, string>>;
  readonly installCrds: boolean;
}

/** `clusters add`: how a cluster is reached, whether it is all there, and what installs its forwarder. */
export function addAdd(clusters: Command, host: Host): void {
  const add = clusters
    .command('add')
    .description('Adds a cluster after a preflight, and prints how its forwarder is installed.')
    .argument('<name>', 'what you call it')
    .option('--kubeconfig <file>', 'a self-contained kubeconfig (a directory fleet)')
    .option('--secret-arn <arn>', 'where its kubeconfig is in Secrets Manager (a deployed cell)')
    .option('--eks <cluster>', 'its name in EKS (a deployed cell); needs --role-arn and --eks-region')
    .option('--eks-region <region>', 'where the EKS cluster is')
    .option('--role-arn <arn>', 'role that the cell takes to reach it')
    .option('--external-id <id>', 'what the trust policy of a role in another account asks for')
    .option('--ingest-key-arn <arn>', 'where the key of its webhook forwarder is in Secrets Manager')
    .option('--label <key=value>', 'a label of it, as often as wanted', label)
    .option('--install-crds', "install the product's CRDs where they are missing", false)
    .action(runIn<AddOptions>(host, add_));
  withExamples(
    add,
    { args: 'clusters add blog --kubeconfig blog.yaml --install-crds', says: 'from a kubeconfig', exit: 'usage' },
    {
      args: 'clusters add blog --eks blog --eks-region eu-central-1 --role-arn arn:aws:iam::123456789012:role/kbind-access-blog',
      says: 'from EKS',
      exit: 'usage',
    },
  );
}

/** Labels are texts for people and scripts: as in Kubernetes, but nothing selects by them. */
function label(text: string, before: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const [, key = '', value = ''] = /^([\w./-]{1,63})=([\w.-]{0,63})$/.exec(text) ?? [];
  if (key === '') throw new InvalidArgumentError('Say key=value.');
  return { ...before, [key]: value };
}

function reachOf({ kubeconfig, secretArn, eks, eksRegion, roleArn, externalId }: AddOptions): NewReach {
  const given = [kubeconfig, secretArn, eks].filter((one) => one !== undefined);
  if (given.length !== 1) throw new CliError('usage', 'say one of --kubeconfig, --secret-arn and --eks');
  if (eks === undefined && [eksRegion, roleArn, externalId].some((one) => one !== undefined)) {
    throw new CliError('usage', '--eks-region, --role-arn and --external-id go with --eks');
  }
  if (kubeconfig !== undefined) return { kubeconfig };
  if (secretArn !== undefined) return { type: 'secret', arn: secretArn };
  if (eks === undefined || eksRegion === undefined || roleArn === undefined) {
    throw new CliError('usage', '--eks needs --eks-region and --role-arn');
  }
  return { type: 'eks', cluster: eks, region: eksRegion, roleArn, ...(externalId === undefined ? {} : { externalId }) };
}

async function add_(session: Session, [name = '']: readonly string[], options: AddOptions) {
  const { fleet } = session.cell;
  const { terminal, limit } = session;
  const reach = reachOf(options);
  const target = await fleet.target(reach);
  const found = await withProgress(terminal, 'checking', () =>
    withClient(session, target, async (client) => {
      const holder = holderIn(session.cell);
      if (options.installCrds) await installCrds(client, holder, limit());
      return preflight(client, holder, limit());
    }),
  );
  const failures = found.checks.filter(({ ok }) => !ok).map(({ check, detail = '' }) => `${check}: ${detail}`);
  if (found.uid === undefined || failures.length > 0) {
    const remedy = failures.some((text) => text.startsWith('crds')) ? ' (--install-crds installs them)' : '';
    throw new CliError('refused', `not added: ${failures.join('; ')}${remedy}`);
  }
  const { label: labels, ingestKeyArn } = options;
  await fleet.add({ name, uid: found.uid, reach, labels, ingestKeyArn });
  const line = await forwarderLine(session, found.uid);
  const data = { cluster: name, uid: found.uid, action: 'added', note: line };
  return answer('clusters add', data, { text: `Added ${name} (${found.uid}).\n${line}`, names: [name] });
}

/** With cloud credentials by default: a cluster without them gets the webhook's values instead (docs/deploy.md, The forwarder). */
async function forwarderLine({ cell }: Session, uid: string): Promise<string> {
  const { fleet, installation, stage } = cell.app.config;
  if ('dir' in fleet) return 'Its forwarder runs with the next start of the local cell: npm start';
  const { control, instances, work } = await cell.queueUrls();
  const values = {
    installation,
    stage,
    clusterUid: uid,
    'send.queues.region': await cell.region(),
    'send.queues.control': control,
    'send.queues.instances': instances,
    'send.queues.work': work,
  };
  const sets = Object.entries(values).map(([key, value]) => `--set ${key}=${value}`);
  const install = 'helm upgrade --install kbind-forwarder infra/forwarder/chart --namespace kbind --create-namespace';
  return `Install its forwarder, with image.repository and rbac in my-values.yaml:\n${install} --values my-values.yaml ${sets.join(' ')}`;
}
