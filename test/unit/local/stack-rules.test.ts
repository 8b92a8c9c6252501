import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { describe, expect, it } from 'vitest';
import { readServerlessFile, type DeclaredQueue } from '../../../lib/local/stack/serverless-file.ts';

/** What design.md asks of the stack, read from the files that are deployed. */
const root = join(import.meta.dirname, '..', '..', '..');
const stack = readServerlessFile(join(root, 'serverless.yml'), { stage: 'test' });
const yaml = (path: string): Record<string, unknown> =>
  parse(readFileSync(join(root, path), 'utf8')) as Record<string, unknown>;

const queue = (logicalId: string): DeclaredQueue => {
  const found = stack.queues.find((declared) => declared.logicalId === logicalId);
  if (found === undefined) throw new Error(`no queue ${logicalId}`);
  return found;
};
const sourceOf = (arn: unknown): string => (arn as { 'Fn::GetAtt': string[] })['Fn::GetAtt'][0] ?? '';
const redriveOf = (declared: DeclaredQueue): { target: string; maxReceiveCount: number } | undefined => {
  const policy = declared.properties['RedrivePolicy'] as
    { deadLetterTargetArn: unknown; maxReceiveCount: number } | undefined;
  return policy && { target: sourceOf(policy.deadLetterTargetArn), maxReceiveCount: policy.maxReceiveCount };
};
const isFifo = (declared: DeclaredQueue): boolean => declared.properties['FifoQueue'] === true;

const mappings = stack.functions.flatMap((declared) =>
  declared.mappings.map((mapping) => ({ name: declared.name, declared, mapping, queue: queue(sourceOf(mapping.arn)) })),
);

describe.each(mappings)('the queue of $name', ({ declared, mapping, queue: source }) => {
  it('stays invisible for at least 90 s and six times the timeout of its function', () => {
    expect(source.properties['VisibilityTimeout']).toBeGreaterThanOrEqual(Math.max(90, 6 * declared.timeoutSeconds));
  });

  it('sends to a dead-letter queue of its own type, after at least five receives', () => {
    const redrive = redriveOf(source);
    expect(redrive?.maxReceiveCount).toBeGreaterThanOrEqual(5);
    expect(isFifo(queue(redrive?.target ?? ''))).toBe(isFifo(source));
  });

  it('is read in batches of ten with partial failures and a limit on concurrency', () => {
    expect(mapping).toMatchObject({ batchSize: 10, reportsItemFailures: true });
    expect(mapping.maximumConcurrency).toBeGreaterThanOrEqual(2);
  });

  it('belongs to a function that may requeue without being taken for a loop', () => {
    const resources = (yaml('serverless.yml')['resources'] ?? []) as readonly { extensions?: object }[];
    const extensions = resources.find((part) => part.extensions !== undefined)?.extensions;
    const logicalId = `${declared.name.charAt(0).toUpperCase()}${declared.name.slice(1)}LambdaFunction`;
    expect(extensions).toMatchObject({ [logicalId]: { Properties: { RecursiveLoop: 'Allow' } } });
  });
});

describe.each(stack.queues)('queue $name', (declared) => {
  it('is encrypted', () => expect(declared.properties['SqsManagedSseEnabled']).toBe(true));

  it('is named after its kind', () => expect(declared.name.endsWith('.fifo')).toBe(isFifo(declared)));

  it('runs in high-throughput mode with ids that carry the change, if it is FIFO', () => {
    const expected = isFifo(declared)
      ? {
          ContentBasedDeduplication: false,
          DeduplicationScope: 'messageGroup',
          FifoThroughputLimit: 'perMessageGroupId',
        }
      : {};
    expect(declared.properties).toMatchObject(expected);
  });
});

it.each(['DeadLettersQueue', 'WorkDeadQueue'])('%s keeps what it holds for 14 days', (logicalId) => {
  expect(queue(logicalId).properties['MessageRetentionPeriod']).toBe(14 * 24 * 3600);
});

it('fires the tick every minute', () => {
  expect(stack.functions.find(({ name }) => name === 'tick')?.schedules).toEqual([{ everyMs: 60_000 }]);
});

describe('roles', () => {
  interface Statement {
    readonly Effect: string;
    readonly Action: string | readonly string[];
    readonly Resource: readonly unknown[];
  }
  const resources = (yaml('infra/roles.yml')['Resources'] ?? {}) as Record<
    string,
    { Properties: { Policies: { PolicyDocument: { Statement: Statement[] } }[] } }
  >;
  const statements = Object.entries(resources).flatMap(([role, { Properties }]) =>
    Properties.Policies.flatMap(({ PolicyDocument }) =>
      PolicyDocument.Statement.map((statement) => ({ role, ...statement })),
    ),
  );

  it('are one for each function', () => {
    const named = yaml('serverless.yml')['functions'] as Record<string, { role: string }>;
    const roles = Object.values(named).map(({ role }) => role);
    expect(new Set(roles).size).toBe(roles.length);
    expect(roles.toSorted()).toEqual(Object.keys(resources).toSorted());
  });

  it('allow no wildcard action, and no wildcard resource but the streams of their own log group', () => {
    for (const { role, Action, Resource } of statements) {
      expect([Action].flat().filter((action) => action.includes('*'))).toEqual([]);
      const name = role.replace('Role', '').toLowerCase();
      const wild = Resource.map((resource) => JSON.stringify(resource)).filter((text) => text.includes('*'));
      for (const text of wild) expect(text).toContain(`\${self:service}-\${sls:stage}-${name}:log-stream:*`);
    }
  });

  it('let a function read its own queue only', () => {
    const readers = statements.filter(({ Action: of }) => of.includes('sqs:ReceiveMessage'));
    for (const { role, Action, Resource } of readers.filter(({ role: reader }) => reader !== 'ReplayRole')) {
      expect(Action).toEqual(['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes']);
      expect(Resource).toEqual([{ 'Fn::GetAtt': [role.replace('Role', 'Queue'), 'Arn'] }]);
    }
  });

  it('let replay read the dead only', () => {
    const read = statements.filter(
      ({ role, Action }) => role === 'ReplayRole' && Action.includes('sqs:ReceiveMessage'),
    );
    expect(read.map(({ Resource }) => Resource)).toEqual([
      [{ 'Fn::GetAtt': ['DeadLettersQueue', 'Arn'] }, { 'Fn::GetAtt': ['WorkDeadQueue', 'Arn'] }],
    ]);
  });
});
