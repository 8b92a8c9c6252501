import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { actionsOf, functionName, ofType, readBuilt, root, statementsOf, target } from './template.ts';

/**
 * The calls that the code of each bundle can make, read from the sources that esbuild put into it, against the role of its
 * function. A role may hold nothing that its code does not call; code that its function never reaches is named here, with why.
 */

interface Metafile {
  readonly inputs: Readonly<Record<string, unknown>>;
}

const SERVICES: Readonly<Record<string, string>> = {
  sqs: 'sqs',
  dynamodb: 'dynamodb',
  'secrets-manager': 'secretsmanager',
  sts: 'sts',
  eks: 'eks',
};

/** `sqs:SendMessage` of `SendMessageBatchCommand`. */
function callsOf(source: string): string[] {
  const calls = [];
  for (const [, names = '', client = ''] of source.matchAll(/import \{([^}]+)\} from '@aws-sdk\/client-([a-z-]+)'/g)) {
    for (const [, command = ''] of names.matchAll(/\b(\w+)Command\b/g)) {
      if (!source.includes(`new ${command}Command(`)) continue;
      const service = SERVICES[client];
      if (service === undefined) throw new Error(`which IAM prefix has @aws-sdk/client-${client}?`);
      calls.push(`${service}:${command.replace(/Batch$/, '')}`);
    }
  }
  return calls;
}

function codeOf(name: string): Set<string> {
  const { inputs } = readBuilt(`maps/${name}.meta.json`) as Metafile;
  const sources = Object.keys(inputs).filter((file) => file.startsWith('lib/'));
  return new Set(sources.flatMap((file) => callsOf(readFileSync(join(root, file), 'utf8'))));
}

/** What the platform does under the role: polling an event source, writing logs. */
const PLATFORM = ['logs:CreateLogStream', 'logs:PutLogEvents'];
const EVENT_SOURCE = ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes'];
const POLLED = new Set(ofType('AWS::Lambda::EventSourceMapping').map(([, { FunctionName }]) => target(FunctionName)));

/** In the bundle, and out of the function's reach. */
const NOT_REACHED = {
  admin: ['dynamodb:PutItem', 'dynamodb:DeleteItem'], // clusters are added and removed by the operator's CLI
  list: ['dynamodb:Scan'], // only tick lists the fleet
  clusters: ['secretsmanager:GetSecretValue', 'sts:AssumeRole'], // only who works on clusters resolves how to reach them
  foreign: ['eks:DescribeCluster'], // called with the credentials of the assumed role, never with the function's own
  dead: ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:ChangeMessageVisibility'], // replay's
  backlog: ['sqs:GetQueueAttributes'], // who reconciles or ticks sends no bursts
} as const;

const notReached: Readonly<Record<string, readonly string[]>> = {
  control: [
    ...NOT_REACHED.admin,
    ...NOT_REACHED.list,
    ...NOT_REACHED.foreign,
    ...NOT_REACHED.dead,
    ...NOT_REACHED.backlog,
  ],
  instances: [
    ...NOT_REACHED.admin,
    ...NOT_REACHED.list,
    ...NOT_REACHED.foreign,
    ...NOT_REACHED.dead,
    ...NOT_REACHED.backlog,
  ],
  work: [...NOT_REACHED.admin, ...NOT_REACHED.list, ...NOT_REACHED.foreign, ...NOT_REACHED.dead],
  tick: [
    ...NOT_REACHED.admin,
    'dynamodb:GetItem', // tick lists
    ...NOT_REACHED.clusters,
    ...NOT_REACHED.foreign,
    ...NOT_REACHED.dead,
    ...NOT_REACHED.backlog,
  ],
  ingest: [
    ...NOT_REACHED.admin,
    ...NOT_REACHED.list,
    'dynamodb:UpdateItem', // heartbeats go through control.fifo
    'sts:AssumeRole', // keys are secrets of this account
    ...NOT_REACHED.foreign,
    ...NOT_REACHED.dead,
  ],
  // Dry runs look clusters up and write nothing down.
  replay: [...NOT_REACHED.admin, ...NOT_REACHED.list, 'dynamodb:UpdateItem', ...NOT_REACHED.foreign],
};

describe.each(ofType('AWS::Lambda::Function'))('%s', (id, properties) => {
  const name = functionName(id);
  const platform = new Set([...PLATFORM, ...(POLLED.has(id) ? EVENT_SOURCE : [])]);
  const granted = new Set(statementsOf(target(properties['Role'])).flatMap(actionsOf));
  const ours = [...granted].filter((action) => !platform.has(action));
  const code = codeOf(name);

  it('is granted nothing that its code does not call', () => {
    expect(ours.filter((action) => !code.has(action))).toEqual([]);
  });

  it('is granted everything that its code calls, but for what it never reaches', () => {
    const missing = [...code].filter((action) => !granted.has(action));
    expect(missing.filter((action) => !(notReached[name] ?? []).includes(action))).toEqual([]);
  });

  it('is not granted what it is said never to reach', () => {
    expect((notReached[name] ?? []).filter((action) => ours.includes(action))).toEqual([]);
  });
});

it('only who sends bursts may ask how much waits at the instances’ queue, beside the function that polls it', () => {
  const asking = ofType('AWS::Lambda::Function').filter(([, { Role }]) =>
    statementsOf(target(Role)).some(
      (statement) =>
        actionsOf(statement).includes('sqs:GetQueueAttributes') &&
        JSON.stringify(statement.Resource).includes('"InstancesQueue"'),
    ),
  );
  expect(asking.map(([id]) => functionName(id)).sort()).toEqual(['ingest', 'instances', 'work']);
});
