import { createFleet, createFleetTable } from '../../app/fleet.ts';
import type { Config } from '../../app/config.ts';
import { createReachResolver } from '../../fleet/aws/resolver.ts';
import { FleetAdmin } from '../../fleet/dynamodb/admin.ts';
import { systemClock } from '../../model/clock.ts';
import { CliError } from '../exit-codes.ts';
import { KbindError } from '../../model/errors.ts';
import type { Fleet } from './fleet.ts';

/** The fleet of a deployed cell: its DynamoDB table. Credentials stay where the table says that they are. */
export function createTableFleet(config: Config, tableName: string): Fleet {
  const seen = createFleet(config, systemClock);
  const { registry } = seen;
  const opened = createFleetTable(config, tableName);
  const admin = new FleetAdmin(opened.table, systemClock);
  const ours = async () =>
    (await admin.list()).filter(({ state, cell }) => state === 'active' && (cell ?? config.stage) === config.stage);

  const calls = async () => {
    const { createAwsCalls } = await import('../../fleet/aws/clients.ts');
    const { region, endpoints } = config;
    return createAwsCalls({ region, endpoints, sessionName: 'kbind-fleet' });
  };
  const resolver = createReachResolver({ calls, clock: systemClock, allowLoopback: config.allowLoopback });
  return {
    place: `table ${tableName}`,
    entries: async () =>
      (await ours())
        .map(({ name, uid, paused, labels, activity }) => ({ name, uid, paused, labels, activity }))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    registry,
    async open(nameOrUid) {
      const entry = (await ours()).find(({ name, uid }) => name === nameOrUid || uid === nameOrUid);
      const missing = new CliError('notFound', `no cluster ${nameOrUid} in the fleet; see: kbind-fleet clusters list`);
      if (entry === undefined) throw missing;
      const lookup = await registry.lookup(entry.uid);
      if (lookup.found === 'unresolved') throw new KbindError('unavailable', lookup.reason);
      if (lookup.found !== 'cluster') throw missing;
      return lookup.cluster;
    },
    async target(reach) {
      if ('kubeconfig' in reach) throw onlyWhereabouts();
      return resolver.resolve(reach);
    },
    async add({ reach, ...cluster }) {
      if ('kubeconfig' in reach) throw onlyWhereabouts();
      await admin.add({ ...cluster, reach, cell: config.stage });
    },
    pause: (name) => admin.pause(name),
    resume: (name) => admin.resume(name),
    remove: (name) => admin.remove(name),
    close() {
      seen.close();
      opened.close();
    },
  };
}

/** The table holds whereabouts and never credentials. */
const onlyWhereabouts = (): CliError =>
  new CliError(
    'usage',
    'a deployed cell takes --secret-arn (a kubeconfig in Secrets Manager) or --eks with --role-arn, not --kubeconfig',
  );
