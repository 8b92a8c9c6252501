import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AddressInfo } from 'node:net';
import { CreateTableCommand, DynamoDBClient, waitUntilTableExists } from '@aws-sdk/client-dynamodb';
import dynalite from 'dynalite';
import { parse } from 'yaml';
import { FleetTable } from '../../../lib/fleet/dynamodb/table.ts';

/** A fleet table on dynalite, with the keys that infra/fleet.yml declares. */
export interface TestTable {
  readonly endpoint: string;
  readonly name: string;
  readonly table: FleetTable;
  readonly client: DynamoDBClient;
  stop(): Promise<void>;
}

type Keys = Pick<
  ConstructorParameters<typeof CreateTableCommand>[0],
  'AttributeDefinitions' | 'KeySchema' | 'BillingMode'
>;

function declaredKeys(): Keys {
  const text = readFileSync(join(import.meta.dirname, '../../../infra/fleet.yml'), 'utf8');
  const { Resources } = parse(text) as { Resources: { FleetTable: { Properties: Keys } } };
  const { AttributeDefinitions, KeySchema, BillingMode } = Resources.FleetTable.Properties;
  return { AttributeDefinitions, KeySchema, BillingMode };
}

export async function startFleetTable(name = 'fleet'): Promise<TestTable> {
  const server = dynalite({ createTableMs: 0 });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const client = new DynamoDBClient({ endpoint, region: 'eu-central-1', credentials });
  await client.send(new CreateTableCommand({ TableName: name, ...declaredKeys() }));
  await waitUntilTableExists({ client, maxWaitTime: 20, minDelay: 1, maxDelay: 1 }, { TableName: name });
  return {
    endpoint,
    name,
    client,
    table: new FleetTable(client, name),
    async stop() {
      client.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
