import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { resolveReferences, type CloudFacts } from '../../../lib/local/stack/cloudformation.ts';
import { rateToMs } from '../../../lib/local/stack/schedule-expression.ts';
import { readServerlessFile } from '../../../lib/local/stack/serverless-file.ts';
import { resolveVariables } from '../../../lib/local/stack/variables.ts';

const folder = mkdtempSync(join(tmpdir(), 'kbind-stack-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
writeFileSync(join(folder, 'part.yml'), 'inner: { size: 3, name: "${sls:stage}-x" }\n');

describe('variables', () => {
  const self = { service: 'demo', custom: { a: { b: 7 }, circle: '${self:custom.circle}' } };
  const sources = { self, folder, options: { stage: 'dev' }, params: { size: 5, on: true } };
  it.each([
    ['${self:service}', 'demo'],
    ['${self:custom.a.b}', 7],
    ['${self:service}-${sls:stage}-q.fifo', 'demo-dev-q.fifo'],
    ['${param:size}', 5],
    ['${param:on}', true],
    ["${opt:region, 'eu-central-1'}", 'eu-central-1'],
    ["${opt:stage, 'prod'}", 'dev'],
    ['${file(part.yml):inner.size}', 3],
    ['${file(part.yml)}', { inner: { size: 3, name: 'dev-x' } }],
    ['arn:${AWS::Partition}:x', 'arn:${AWS::Partition}:x'],
    ['plain $& text', 'plain $& text'],
  ])('resolves %s', (text, expected) => {
    expect(resolveVariables({ at: [text] }, sources)).toEqual({ at: [expected] });
  });

  it.each([
    ['${self:custom.none}', /\$\{self:custom\.none\} has no value/],
    ['${opt:none}', /\$\{opt:none\} has no value/],
    ['${self:custom.circle}', /circle/],
  ])('refuses %s by name', (text, message) => {
    expect(() => resolveVariables(text, sources)).toThrow(message);
  });
});

describe('references', () => {
  const queue = { name: 'q.fifo', url: 'http://127.0.0.1:1/0/q.fifo', arn: 'arn:aws:sqs:r:0:q.fifo' };
  const facts: CloudFacts = { region: 'r', account: '0', queues: new Map([['Q', queue]]) };
  it.each([
    [{ Ref: 'Q' }, queue.url],
    [{ Ref: 'AWS::Region' }, 'r'],
    [{ 'Fn::GetAtt': ['Q', 'Arn'] }, queue.arn],
    [{ 'Fn::GetAtt': 'Q.QueueName' }, queue.name],
    [{ 'Fn::Sub': '${AWS::AccountId}/${Q.QueueName}/${Q}' }, `0/q.fifo/${queue.url}`],
    [{ 'Fn::Join': ['-', ['a', { Ref: 'AWS::Partition' }]] }, 'a-aws'],
    [
      { a: [{ Ref: 'Q' }], b: 1 },
      { a: [queue.url], b: 1 },
    ],
  ])('resolves %j', (value, expected) => expect(resolveReferences(value, facts)).toEqual(expected));

  it.each([
    [{ Ref: 'Table' }, /Table is no queue/],
    [{ 'Fn::If': ['a', 1, 2] }, /does not know Fn::If/],
    [{ 'Fn::GetAtt': ['Q', 'Colour'] }, /does not know Q\.Colour/],
  ])('refuses %j by name', (value, message) => expect(() => resolveReferences(value, facts)).toThrow(message));
});

describe('rates', () => {
  it.each([
    ['rate(1 minute)', 60_000],
    ['rate(5 minutes)', 300_000],
    ['rate(2 hours)', 7_200_000],
    ['rate(1 day)', 86_400_000],
  ])('%s', (expression, expected) => expect(rateToMs(expression)).toBe(expected));
  it.each(['cron(0 12 * * ? *)', 'rate(0 minutes)', 'rate(1 second)', 'soon'])('refuses %s', (expression) => {
    expect(() => rateToMs(expression)).toThrow(expression);
  });
});

describe('a file that cannot be run', () => {
  const read = (text: string) => {
    writeFileSync(join(folder, 'serverless.yml'), text);
    return () => readServerlessFile(join(folder, 'serverless.yml'), { stage: 'dev' });
  };
  const provider = 'provider: { region: r }';
  it.each([
    ['batches that FIFO queues do not have', 'sqs: { arn: x, batchSize: 11 }', /batchSize/],
    ['a concurrency that Lambda refuses', 'sqs: { arn: x, maximumConcurrency: 1 }', /maximumConcurrency/],
    ['a misspelt option', 'sqs: { arn: x, batchsize: 5 }', /batchsize/],
    ['an event that is not run here', 'http: GET /', /events/],
    ['a schedule that is not run here', 'schedule: cron(0 12 * * ? *)', /cron/],
  ])('is refused: %s', (_title, event, message) => {
    const file = `service: s\n${provider}\nfunctions: { f: { handler: f.handler, events: [ { ${event} } ] } }\n`;
    expect(read(file)).toThrow(message);
  });

  it('is refused: a queue without a name', () => {
    const queues = 'resources: { Resources: { Q: { Type: AWS::SQS::Queue } } }';
    expect(read(`service: s\n${provider}\nfunctions: {}\n${queues}\n`)).toThrow(/Q needs a QueueName/);
  });
});
