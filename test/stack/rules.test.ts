import { describe, expect, it } from 'vitest';
import { actionsOf, functionName, ofType, target, template, type Policy } from './template.ts';

/** The rules of design.md, held by the template that is deployed. */

const DAY = 86_400;
const functions = ofType('AWS::Lambda::Function');
const queues = new Map(ofType('AWS::SQS::Queue'));
const mappings = ofType('AWS::Lambda::EventSourceMapping').map(([, properties]) => properties);
const roles = ofType('AWS::IAM::Role');
const policies = ofType('AWS::IAM::Policy');
const queueTimeouts = mappings.map((mapping) => ({
  queue: target(mapping['EventSourceArn']),
  timeout: Number(template.Resources[target(mapping['FunctionName'])]?.Properties['Timeout']),
}));

describe('functions', () => {
  it.each(functions)('%s runs Node 24 on ARM, with a role and a log group of its own', (id, properties) => {
    expect(properties).toMatchObject({ Runtime: 'nodejs24.x', Architectures: ['arm64'] });
    expect(properties).not.toHaveProperty('ReservedConcurrentExecutions');
    const role = target(properties['Role']);
    expect(functions.filter(([, other]) => target(other['Role']) === role)).toHaveLength(1);
    const group = template.Resources[id.replace('LambdaFunction', 'LogGroup')]?.Properties;
    expect(group?.['LogGroupName']).toBe(`/aws/lambda/${String(properties['FunctionName'])}`);
    expect(group?.['RetentionInDays']).toBe(30);
  });

  it('that requeue allow loops, and no other does', () => {
    const allowed = functions
      .filter(([, { RecursiveLoop }]) => RecursiveLoop === 'Allow')
      .map(([id]) => functionName(id));
    expect(allowed.toSorted()).toEqual(['control', 'instances', 'work']);
  });

  it.each(['Control', 'Instances', 'Work', 'Replay'])('%s is inside the VPC when there is one', (name) => {
    expect(template.Resources[`${name}LambdaFunction`]?.Properties['VpcConfig']).toMatchObject({
      'Fn::If': ['InVpc', expect.anything(), { Ref: 'AWS::NoValue' }],
    });
  });
});

describe('queues', () => {
  it.each([...queues])('%s is encrypted', (_id, properties) => {
    expect(properties['SqsManagedSseEnabled']).toBe(true);
  });

  it.each([...queues].filter(([, { FifoQueue }]) => FifoQueue === true))(
    '%s is FIFO, high throughput',
    (_id, queue) => {
      expect(queue).toMatchObject({
        ContentBasedDeduplication: false,
        DeduplicationScope: 'messageGroup',
        FifoThroughputLimit: 'perMessageGroupId',
      });
      expect(queue['QueueName']).toMatch(/\.fifo$/);
    },
  );

  it.each(queueTimeouts)('$queue hides messages for 90 s and six times its function', ({ queue, timeout }) => {
    const { VisibilityTimeout } = queues.get(queue) ?? {};
    expect(VisibilityTimeout).toBeGreaterThanOrEqual(Math.max(90, 6 * timeout));
  });

  it.each(queueTimeouts)(
    '$queue gives up after five receives, into a queue of its kind that keeps 14 days',
    ({ queue }) => {
      const source = queues.get(queue);
      const redrive = source?.['RedrivePolicy'] as { deadLetterTargetArn: unknown; maxReceiveCount: number };
      expect(redrive.maxReceiveCount).toBeGreaterThanOrEqual(5);
      const dead = queues.get(target(redrive.deadLetterTargetArn));
      expect(dead?.['MessageRetentionPeriod']).toBe(14 * DAY);
      expect(dead?.['FifoQueue']).toBe(source?.['FifoQueue']);
    },
  );

  it('reach functions in batches that may fail in part, as many side by side as the cell allows', () => {
    expect(mappings).toHaveLength(3);
    for (const mapping of mappings) {
      expect(mapping['FunctionResponseTypes']).toEqual(['ReportBatchItemFailures']);
      expect(mapping['BatchSize']).toBeLessThanOrEqual(10);
      expect(mapping['MaximumBatchingWindowInSeconds'] ?? 0).toBe(0);
      const { MaximumConcurrency } = mapping['ScalingConfig'] as { MaximumConcurrency: number };
      expect(MaximumConcurrency).toBeGreaterThanOrEqual(2);
      expect(MaximumConcurrency).toBeLessThanOrEqual(1000);
    }
  });
});

describe('tables', () => {
  it.each(ofType('AWS::DynamoDB::Table'))('%s is encrypted, restorable and outlives the stack', (id, table) => {
    expect(table).toMatchObject({
      SSESpecification: { SSEEnabled: true },
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
      BillingMode: 'PAY_PER_REQUEST',
    });
    expect(template.Resources[id]?.DeletionPolicy).toBe('Retain');
  });
});

/** Statements that name no single resource, with the reason that infra/ gives beside them in words. */
const WILDCARDS: Readonly<Record<string, string>> = {
  InterfacesHaveNoNameYet: 'EC2 has no resource-level permissions for describing network interfaces',
  SecretsEndWithCharactersOfTheirOwn: 'Secrets Manager appends six characters; only names under the cell’s prefix',
  ClustersLieInAccountsThatJoinLater: 'only roles of one name prefix, each of which names this cell and an external id',
};
/** A wildcard at the end of an ARN that is otherwise whole. */
const LOG_STREAMS = /log-group:\/aws\/lambda\/[a-z-]+:log-stream:\*$/;

describe('roles', () => {
  const own = roles.flatMap(([, { Policies }]) => Policies as readonly Policy[]);
  const attached = policies.map(([, policy]) => policy as unknown as Policy);
  const statements = [...own, ...attached].flatMap(({ PolicyDocument }) => PolicyDocument.Statement);

  it('grant no wildcard action, and nothing from managed policies', () => {
    for (const statement of statements) {
      expect(statement.Effect).toBe('Allow');
      for (const action of actionsOf(statement)) expect(action).toMatch(/^[a-z0-9-]+:[A-Za-z]+$/);
    }
    for (const [, role] of roles) expect(role).not.toHaveProperty('ManagedPolicyArns');
  });

  it('grant no wildcard resource without a reason', () => {
    const wild = statements.filter(({ Resource, Sid }) =>
      [Resource].flat().some((resource) => {
        const text = JSON.stringify(resource);
        const arn = text.match(/"([^"]*\*[^"]*)"/)?.[1];
        return arn !== undefined && !LOG_STREAMS.test(arn) && WILDCARDS[Sid ?? ''] === undefined;
      }),
    );
    expect(wild).toEqual([]);
  });

  it('are taken by Lambda only', () => {
    for (const [, role] of roles) {
      expect(role['AssumeRolePolicyDocument']).toMatchObject({
        Statement: [{ Effect: 'Allow', Principal: { Service: 'lambda.amazonaws.com' }, Action: 'sts:AssumeRole' }],
      });
    }
  });
});
