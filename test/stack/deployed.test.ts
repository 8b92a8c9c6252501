import { describe, expect, it } from 'vitest';
import { ofType, readBuilt, statementsOf, target, template } from './template.ts';

/** What moto's server made of the template (infra/checks/deploy.py), read back. */
interface Deployed {
  readonly stack: string;
  readonly resources: Readonly<Record<string, string>>;
  readonly queues: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly functions: Readonly<
    Record<
      string,
      {
        readonly Role: string;
        readonly FunctionName: string;
        readonly Environment: { readonly Variables: Record<string, string> };
      }
    >
  >;
  readonly mappings: readonly {
    readonly EventSourceArn: string;
    readonly FunctionArn: string;
    readonly BatchSize: number;
    readonly FunctionResponseTypes: readonly string[];
    readonly ScalingConfig: { readonly MaximumConcurrency: number };
  }[];
  readonly roles: Readonly<
    Record<string, { readonly arn: string; readonly policies: readonly { readonly Statement: readonly unknown[] }[] }>
  >;
  readonly tables: Readonly<Record<string, { readonly KeySchema: unknown }>>;
  readonly logGroups: readonly { readonly logGroupName: string; readonly retentionInDays: number }[];
  readonly rules: readonly { readonly ScheduleExpression: string; readonly State: string }[];
}

const deployed = readBuilt('stack/deployed.json') as Deployed;

/** Types that moto's CloudFormation does not make: the template's own rules are all that holds them here. */
const NOT_IN_MOTO: ReadonlySet<string> = new Set([
  'AWS::ApiGatewayV2::Api',
  'AWS::ApiGatewayV2::Integration',
  'AWS::ApiGatewayV2::Route',
  'AWS::ApiGatewayV2::Stage',
  'AWS::CloudWatch::Alarm',
  'AWS::S3::BucketPolicy',
]);

const queueArn = (id: string): string | undefined => deployed.queues[id]?.['QueueArn'];

describe('the deployed stack', () => {
  it('is complete', () => {
    expect(deployed.stack).toMatch(/^(CREATE|UPDATE)_COMPLETE$/);
    const missing = Object.entries(template.Resources)
      .filter(([id, resource]) => deployed.resources[id] === undefined && !('Condition' in resource))
      .map(([, { Type }]) => Type);
    expect(missing.filter((type) => !NOT_IN_MOTO.has(type))).toEqual([]);
  });

  it.each(ofType('AWS::SQS::Queue'))('has queue %s with its attributes and its dead letters', (id, wanted) => {
    const found = deployed.queues[id] ?? {};
    const names = ['VisibilityTimeout', 'MessageRetentionPeriod', 'SqsManagedSseEnabled', 'FifoQueue'];
    const declared = names.filter((name) => wanted[name] !== undefined);
    expect(declared.map((name) => found[name])).toEqual(declared.map((name) => JSON.stringify(wanted[name])));
    const redrive = wanted['RedrivePolicy'] as { deadLetterTargetArn: unknown; maxReceiveCount: number } | undefined;
    const policy = JSON.parse(found['RedrivePolicy'] ?? '{}') as { deadLetterTargetArn?: string };
    const dead = redrive === undefined ? undefined : queueArn(target(redrive.deadLetterTargetArn));
    expect(policy.deadLetterTargetArn).toBe(dead);
  });

  it.each([
    ['ControlQueue', 'control'],
    ['InstancesQueue', 'instances'],
    ['WorkQueue', 'work'],
  ])('feeds %s to %s', (queue, name) => {
    const mapping = deployed.mappings.find(({ EventSourceArn }) => EventSourceArn === queueArn(queue));
    expect(mapping?.FunctionArn).toMatch(new RegExp(`-${name}$`));
    expect(mapping).toMatchObject({ BatchSize: 10, FunctionResponseTypes: ['ReportBatchItemFailures'] });
    expect(mapping?.ScalingConfig.MaximumConcurrency).toBeGreaterThanOrEqual(2);
  });

  it.each(ofType('AWS::Lambda::Function'))('runs %s in its role, with every queue’s URL', (id, wanted) => {
    const found = deployed.functions[id];
    expect(found?.Role).toBe(deployed.roles[target(wanted['Role'])]?.arn);
    for (const [variable, value] of Object.entries(found?.Environment.Variables ?? {})) {
      expect(`${variable}=${value}`).not.toMatch(/=$|\[object|Fn::|Ref/);
    }
    const group = deployed.logGroups.find(({ logGroupName }) => logGroupName === `/aws/lambda/${found?.FunctionName}`);
    expect(group?.retentionInDays).toBe(30);
  });

  it.each(ofType('AWS::IAM::Role'))('gives %s its statements, with resources by their own ARNs', (id) => {
    const statements = deployed.roles[id]?.policies.flatMap(({ Statement }) => Statement) ?? [];
    expect(statements).toHaveLength(statementsOf(id).length);
    expect(JSON.stringify(statements)).not.toMatch(/Fn::|"Ref"/);
  });

  it.each(ofType('AWS::DynamoDB::Table'))('has table %s with its key', (id, wanted) => {
    expect(deployed.tables[id]?.KeySchema).toEqual(wanted['KeySchema']);
  });

  it('ticks every minute', () => {
    expect(deployed.rules).toMatchObject([{ ScheduleExpression: 'rate(1 minute)', State: 'ENABLED' }]);
  });
});
