import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { metricNames } from '../../lib/model/metric-names.ts';
import { errorClasses } from '../../lib/model/errors.ts';
import { ofType, root, target, template } from './template.ts';

interface Alarm {
  readonly AlarmName: string;
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions: readonly { readonly Name: string; readonly Value: unknown }[];
}

const alarms = ofType('AWS::CloudWatch::Alarm') as unknown as [string, Alarm][];
const named = alarms.map(([, alarm]) => [alarm.AlarmName.replace('kbind-serverless-dev-', ''), alarm] as const);
const runbook = readFileSync(join(root, 'docs', 'runbook.md'), 'utf8');
const functionNames = ofType('AWS::Lambda::Function').map(([, { FunctionName }]) => FunctionName);
const PLATFORM_METRICS: Readonly<Record<string, readonly string[]>> = {
  'AWS/SQS': ['ApproximateNumberOfMessagesVisible', 'ApproximateAgeOfOldestMessage'],
  'AWS/Lambda': ['Errors', 'Throttles', 'RecursiveInvocationsDropped'],
};

describe('alarms', () => {
  const ours = named.filter(([, { Namespace }]) => Namespace === 'kbind');
  const ofPlatform = named.filter(([, { Namespace }]) => Namespace !== 'kbind');

  it.each(ours)('%s stands on a metric that functions count', (_name, { MetricName, Dimensions }) => {
    expect(Object.keys(metricNames)).toContain(MetricName);
    expect(Dimensions.slice(0, 2)).toEqual([
      { Name: 'service', Value: 'kbind' },
      { Name: 'stage', Value: 'dev' },
    ]);
    for (const { Name, Value } of Dimensions.slice(2))
      expect([Name, errorClasses.includes(Value as never)]).toEqual(['class', true]);
  });

  it.each(ofPlatform)(
    '%s stands on a metric of something in this stack',
    (_name, { Namespace, MetricName, Dimensions }) => {
      expect(PLATFORM_METRICS[Namespace]).toContain(MetricName);
      const value = Dimensions[0]?.Value;
      const known =
        Namespace === 'AWS/Lambda'
          ? functionNames.includes(value)
          : template.Resources[target(value)]?.Type === 'AWS::SQS::Queue';
      expect(known).toBe(true);
    },
  );

  it('cover every queue, every dead-letter queue and every function', () => {
    const all = named.map(([name]) => name);
    expect(all).toEqual(
      expect.arrayContaining(['dead-letters', 'work-dead', 'control-age', 'instances-age', 'work-age']),
    );
    for (const name of functionNames) {
      const short = String(name).replace('kbind-serverless-dev-', '');
      expect(all).toEqual(expect.arrayContaining([`${short}-errors`, `${short}-throttles`]));
    }
  });

  it.each(named)('%s has a section in the runbook', (name) => {
    expect(runbook).toMatch(new RegExp(`^### .*\`${name}\``, 'm'));
  });

  it('are the only ones that the runbook speaks of', () => {
    const sections = [...runbook.matchAll(/^### (.+)$/gm)].flatMap(([, title]) =>
      [...(title ?? '').matchAll(/`([a-z-]+)`/g)].map(([, name]) => name),
    );
    expect(new Set(sections)).toEqual(new Set(named.map(([name]) => name)));
  });
});

describe('metrics', () => {
  it.each(Object.entries(metricNames))('%s is explained in the runbook', (name, meaning) => {
    expect(runbook).toContain(`| \`${name}\``);
    expect(runbook).toContain(meaning);
  });

  it('of the dashboard exist', () => {
    const [[, dashboard]] = ofType('AWS::CloudWatch::Dashboard') as [
      [string, { DashboardBody: { 'Fn::Sub': string } }],
    ];
    const text = dashboard.DashboardBody['Fn::Sub'];
    expect(() => JSON.parse(text) as unknown).not.toThrow();
    for (const [, name] of text.matchAll(/"kbind", "([A-Za-z]+)", "service"/g))
      expect(Object.keys(metricNames)).toContain(name);
  });
});
