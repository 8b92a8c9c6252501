import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { codeOf } from '../../../lib/cli/exit-codes.ts';
import { createProgram, eachCommand } from '../../../lib/cli/program.ts';
import { examplesOf } from '../../../lib/cli/session.ts';
import { resources } from '../../../lib/model/api.ts';
import { readClusterIdentity } from '../../../lib/kube/identity.ts';
import { createSqsQueues } from '../../../lib/queue/sqs.ts';
import { SQSClient } from '@aws-sdk/client-sqs';
import { reconcileRequest } from '../../../lib/model/request.ts';
import { buildCli, kbindFleet, steady, type Ran } from '../../support/cli/run.ts';
import { gadgets, PROVIDER_USER, startCliFleet, widgets, type CliFleet } from '../../support/cli/fleet.ts';
import { until } from '../../support/apiserver/servers.ts';
import { letter } from '../../support/queue/letters.ts';

/** The built binary against a running cell on embedded clusters. Tests go on where those before them ended. */

let fleet: CliFleet;
let schema: { $defs: Record<string, object> };
let uid: string;
const blue = { namespace: 'default', name: 'blue' };
const HELD = 'example.org/held';
let size = 1;

beforeAll(async () => {
  [fleet] = await Promise.all([startCliFleet(), buildCli()]);
  schema = JSON.parse(await readFile('docs/cli-schema.json', 'utf8')) as typeof schema;
  uid = await readClusterIdentity(fleet.shop.client);
  await fleet.make('shop', widgets, blue, { spec: { size: 1 } });
  await fleet.copied(widgets, blue);
}, 180_000);

afterAll(() => fleet.stop());

const cli = (...args: string[]): Promise<Ran> => kbindFleet(['--fleet', fleet.dir, ...args], { cwd: fleet.folder });
const words = (ran: Ran): string => steady(ran.out, { [fleet.dir]: 'FLEET', [fleet.folder]: 'FOLDER', [uid]: 'SHOP' });

/** Runs with -o json, and holds the answer to the published schema. */
async function json(name: string, ...args: string[]): Promise<Record<string, unknown> & { code: number }> {
  const { out, code, err } = await cli(...args, '-o', 'json');
  if (out === '') throw new Error(err);
  const data = JSON.parse(out) as Record<string, unknown>;
  const definition = schema.$defs[name];
  if (definition === undefined) throw new Error(`no schema ${name}`);
  const validate = new Ajv2020({ strict: false }).compile(definition);
  expect(validate(data), `schema: ${JSON.stringify(validate.errors)}`).toBe(true);
  return { ...data, code };
}

const explain = (api: string, name: string) => json('explain', 'explain', 'shop', api, name, '--no-dead-letters');
/** The last steps of the path, with their answers. */
const endOf = (explained: Record<string, unknown>, steps: number): string[] => nodesOf(explained).slice(-steps);
const nodesOf = (explained: Record<string, unknown>): string[] =>
  (explained['trace'] as { node: string; answer?: string }[]).map(({ node, answer }) =>
    answer === undefined ? node : `${node} → ${answer}`,
  );

describe('what is there', () => {
  it('clusters list', async () => {
    expect(words(await cli('clusters', 'list'))).toMatchSnapshot();
    expect((await cli('clusters', 'list', '-o', 'name')).out).toBe('shop\n');
    expect(await json('clusters list', 'clusters', 'list')).toMatchObject({ code: 0, clusters: [{ name: 'shop' }] });
    expect(parse((await cli('clusters', 'list', '-o', 'yaml')).out)).toMatchObject({ clusters: [{ name: 'shop' }] });
  });

  it('clusters check', async () => {
    expect(words(await cli('clusters', 'check')).replaceAll(/ +/g, ' ')).toMatchSnapshot();
    expect(await json('clusters check', 'clusters', 'check')).toMatchObject({ code: 0, clusters: [{ ok: true, uid }] });
  });

  it('status', async () => {
    const ran = await cli('status');
    expect(words(ran)).toMatchSnapshot();
    const { code, clusters, queues } = await json('status', 'status', 'shop', '--deep');
    expect({ code, clusters }).toMatchObject({
      code: 0,
      clusters: [
        { uid, connections: { total: 1, ready: 1 }, bindings: { total: 2, ready: 1 }, instances: { deleting: 0 } },
      ],
    });
    expect(queues).toMatchObject({ deadLetters: 0 });
  });
});

describe('explain names the node', () => {
  it('in sync', async () => {
    await until(async () => (await explain('widgets.example.org', 'default/blue'))['prospect'] === 'healed');
    expect(words(await cli('explain', 'shop', 'widgets.example.org', 'default/blue'))).toMatchSnapshot();
    expect(endOf(await explain('widgets.example.org', 'default/blue'), 1)).toEqual([
      'Read provider object again Copy status if present',
    ]);
  });

  it('not bound', async () => {
    await until(() => fleet.shop.client.find(resources.crds, { name: 'gadgets.example.org' }));
    await fleet.make('shop', gadgets, { namespace: 'default', name: 'lonely' }, { spec: {} });
    const explained = await explain('gadgets.example.org', 'default/lonely');
    expect(explained).toMatchObject({ prospect: 'idle', detail: 'no binding covers it' });
    expect(endOf(explained, 3)).toEqual([
      'Resolve covering binding ClusterBinding before namespaced Binding → none',
      'Consumer object deleting? → no',
      'Covering binding Ready? → no',
    ]);
  });

  it('binding not ready', async () => {
    await fleet.make('shop', gadgets, { namespace: 'team-a', name: 'early' }, { spec: {} });
    const explained = await explain('gadgets.example.org', 'team-a/early');
    expect(explained).toMatchObject({ prospect: 'idle', detail: 'Binding gadgets is not Ready' });
    expect(endOf(explained, 3)).toEqual([
      'Resolve covering binding ClusterBinding before namespaced Binding → Binding gadgets',
      'Consumer object deleting? → no',
      'Covering binding Ready? → no',
    ]);
    expect(await explain('binding', 'team-a/gadgets')).toMatchObject({ controller: 'binding', exists: true });
  });

  it('foreign object', async () => {
    const key = { namespace: 'default', name: 'taken' };
    await fleet.make('provider', widgets, key, { spec: { theirs: true } });
    await fleet.make('shop', widgets, key, { spec: { size: 1 } });
    await until(async () => (await explain('widgets.example.org', 'default/taken'))['prospect'] === 'waiting');
    const explained = await explain('widgets.example.org', 'default/taken');
    expect(endOf(explained, 3)).toEqual([
      'Provider target ownership? → unmarked',
      'conflictPolicy is Adopt? → no',
      'Record conflict annotation and Warning Event → ForeignObjectExists',
    ]);
    expect(explained).toMatchObject({ detail: 'ForeignObjectExists', events: [{ reason: 'ForeignObjectExists' }] });
  });

  it('forbidden', async () => {
    const allow = fleet.provider.embedded.deny({
      user: PROVIDER_USER,
      resources: ['widgets'],
      names: ['blue'],
      verbs: ['get'],
    });
    const explained = await explain('widgets.example.org', 'default/blue');
    allow();
    expect(explained).toMatchObject({ prospect: 'failing', detail: expect.stringContaining('forbidden') });
    expect(endOf(explained, 2)).toEqual(['Read provider object', 'Warning Event → Forbidden']);
  });

  it('provider down', async () => {
    fleet.wire.cut();
    const explained = await explain('widgets.example.org', 'default/blue');
    fleet.wire.mend();
    expect(explained).toMatchObject({
      prospect: 'failing',
      detail: expect.stringMatching(/^unavailable: .*no answer/),
    });
    expect(endOf(explained, 1)).toEqual(['Read provider object']);
  });

  it('waiting for a provider finalizer', async () => {
    const key = { namespace: 'default', name: 'held' };
    await fleet.make('shop', widgets, key, { spec: { size: 1 } });
    const copy = await fleet.copied(widgets, key);
    const add = [{ op: 'add', path: '/metadata/finalizers', value: [HELD] } as const];
    await fleet.provider.client.patch(widgets, key, { read: { uid: copy.metadata.uid }, operations: add });
    const { metadata } = await fleet.shop.client.get(widgets, key);
    await until(async () => {
      const { uid: of, resourceVersion } = await fleet.shop.client.get(widgets, key).then((object) => object.metadata);
      return fleet.shop.client.delete(widgets, key, { uid: of, resourceVersion }).then(
        () => true,
        () => false,
      );
    });
    expect(metadata.name).toBe('held');
    await until(async () => (await explain('widgets.example.org', 'default/held'))['prospect'] === 'waiting');
    const explained = await explain('widgets.example.org', 'default/held');
    expect(explained['detail']).toBe('the provider copy is going away');
    expect(endOf(explained, 3)).toEqual([
      'Read mapped provider object',
      'Provider copy exists and is ours? → yes',
      'Request provider deletion Requeue after 2 seconds',
    ]);
  });

  it('an object that is gone, and one of a kind that is not there', async () => {
    expect(await explain('widgets.example.org', 'default/none')).toMatchObject({
      prospect: 'gone',
      exists: false,
      code: 0,
    });
    expect(await explain('connection', 'demo')).toMatchObject({ exists: true, controller: 'connection' });
  });

  it('the diff that an apply would make', async () => {
    const { uid: of } = (await fleet.shop.client.get(widgets, blue)).metadata;
    await cli('clusters', 'pause', 'shop');
    // A running cell sees within five seconds that it was paused: until then it is quicker than whoever explains.
    const { write, paused } = await until(async () => {
      size += 1;
      const operations = [{ op: 'replace', path: '/spec/size', value: size } as const];
      await fleet.shop.client.patch(widgets, blue, { read: { uid: of }, operations });
      const explained = await explain('widgets.example.org', 'default/blue');
      return explained['prospect'] === 'would-act' && explained;
    });
    expect({ write, paused }).toMatchObject({
      paused: true,
      write: { verb: 'apply', side: 'provider', object: 'default/blue' },
    });
    const { diff } = write as { diff: unknown[] };
    expect(diff).toContainEqual({ path: 'spec.size', before: expect.any(String), after: String(size) });
    expect(await json('clusters resume', 'clusters', 'resume', 'shop')).toMatchObject({ code: 0, action: 'resumed' });
  });
});

describe('diff', () => {
  it('reports what the backstop would find, and ends with 6', async () => {
    const key = { namespace: 'default', name: 'blue' };
    // A running cell sees that it was resumed within five seconds; what is enqueued before that is dropped.
    await until(async () => {
      await cli('reconcile', 'shop', 'widgets.example.org', 'default/blue');
      return ((await fleet.provider.client.get(widgets, key)).spec as { size: number }).size === size;
    });
    const report = await json('diff', 'diff', 'shop', 'widgets.example.org');
    expect(report).toMatchObject({ code: 6, complete: true, cluster: 'shop' });
    expect(report['differences']).toContainEqual({ kind: 'foreign', key: 'default/taken', why: 'conflict' });
    expect(report['inSync']).toBe(1);
    expect(words(await cli('diff', 'shop', 'widgets.example.org'))).toContain('foreign');
  });
});

describe('dead letters', () => {
  async function bury(...names: string[]): Promise<void> {
    const { queues, endpoint } = fleet.cell;
    const client = new SQSClient({
      endpoint,
      region: 'eu-central-1',
      credentials: { accessKeyId: 'x', secretAccessKey: 'x' },
    });
    const urls = Object.fromEntries(Object.entries(queues).map(([name, { url }]) => [name, url])) as Parameters<
      typeof createSqsQueues
    >[1];
    const messages = names.map((name) => {
      const request = reconcileRequest(uid, 'instance', { namespace: 'default', name }, { api: 'widgets.example.org' });
      return {
        body: letter(name, { request, firstFailure: Date.now() - 60_000, lastFailure: Date.now() - 60_000 }),
        group: name,
        deduplicationId: `${name}-${Date.now()}`,
      };
    });
    await createSqsQueues(client, urls).send('deadLetters', messages);
    client.destroy();
  }

  it('list, show and dry run', async () => {
    await bury('blue', 'none', 'taken');
    expect(words(await cli('dlq', 'list'))).toMatchSnapshot();
    const { entries } = (await json('dlq list', 'dlq', 'list', '--entries')) as unknown as {
      entries: { id: string; key: string }[];
    };
    expect(entries).toHaveLength(3);
    expect(await json('dlq show', 'dlq', 'show', entries[0]?.id.slice(0, 8) ?? '')).toMatchObject({
      code: 0,
      id: entries[0]?.id,
    });
    const tried = (await json('dlq list --dry-run', 'dlq', 'list', '--dry-run')) as unknown as {
      entries: { key: string; prospect: string }[];
    };
    const prospects = tried.entries.map(({ key, prospect }) => `${key.split('|').at(-1)} ${prospect}`).toSorted();
    expect(prospects).toEqual(['blue healed', 'none gone', 'taken waiting']);
  });

  it('drop takes what has healed; replay the rest; both ask first', async () => {
    const unasked = await cli('dlq', 'drop');
    expect(unasked).toMatchObject({ code: 4, out: '' });
    expect(unasked.err).toContain('Drop 2 dead letters');
    expect(await json('dlq drop', 'dlq', 'drop', '--yes')).toMatchObject({ code: 0, dropped: 2, kept: 1 });
    expect((await cli('dlq', 'replay')).err).toContain('Replay 1 of 1 dead letters');
    expect(await json('dlq replay', 'dlq', 'replay', '--name', 'ta*', '--yes')).toMatchObject({ code: 0, enqueued: 1 });
    expect((await cli('dlq', 'list')).out).toBe('No dead letters.\n');
  });
});

describe('reconcile', () => {
  it('enqueues a key and waits for its end, an API, a cluster', async () => {
    const waited = await json('reconcile', 'reconcile', 'shop', 'widgets.example.org', 'default/blue', '--wait');
    expect(waited).toMatchObject({ code: 0, outcome: { prospect: 'healed' } });
    expect((await cli('reconcile', 'shop', 'widgets.example.org')).out).toBe(
      'Enqueued: sweep of widgets.example.org.\n',
    );
    expect(await json('reconcile', 'reconcile', 'shop')).toMatchObject({ code: 0, enqueued: 'sweep of every API' });
  });
});

describe('help', () => {
  const program = createProgram({
    terminal: () => {
      throw new Error('nobody');
    },
    exit: () => undefined,
  });
  const examples: [string, number][] = [];
  eachCommand(program, (command) => {
    for (const { args, exit = 'ok' } of examplesOf(command)) examples.push([args, codeOf(exit)]);
  });
  const leaves: string[] = [];
  eachCommand(program, (command) => {
    if (command !== program && examplesOf(command).length === 0) leaves.push(command.name());
  });

  it('has an example of every command', () => expect(leaves).toEqual([]));

  it.each(examples)('%s', async (args, code) => {
    const ran = await cli(...args.split(' '));
    // Differences and unanswered questions are news of this fleet, not of the example.
    expect([code, codeOf('trouble')], `said: ${ran.err}`).toContain(ran.code);
  });
});

describe('bind and unbind', () => {
  let refused = (): void => undefined;
  const providerFile = (): string => join(fleet.folder, 'provider.yaml');

  it('lists, tries, asks and writes', async () => {
    expect((await json('bind --list', 'bind', 'shop', '--provider', providerFile(), '--list'))['apis']).toMatchObject([
      { name: 'gadgets.example.org' },
      { name: 'widgets.example.org' },
    ]);
    const args = [
      'bind',
      'shop',
      '--provider',
      providerFile(),
      '--api',
      'gadgets.example.org',
      '--connection',
      'second',
      '--in',
      'default',
    ];
    const dry = await cli(...args, '--dry-run');
    expect(words(dry)).toMatchSnapshot();
    expect(await cli(...args)).toMatchObject({ code: 4 });
    expect(await fleet.shop.client.find(resources.connections, { name: 'second' })).toBeUndefined();
    expect(await json('bind', ...args, '--yes')).toMatchObject({ code: 0, dryRun: false });
    expect(await fleet.shop.client.find(resources.connections, { name: 'second' })).toBeDefined();
  });

  it('unbind shows what goes, asks, and follows the drain', async () => {
    expect(words(await cli('unbind', 'shop', 'demo', '--dry-run'))).toMatchSnapshot();
    expect(await cli('unbind', 'shop', 'demo')).toMatchObject({ code: 4 });
    refused = fleet.provider.embedded.deny({ user: PROVIDER_USER, resources: ['widgets'], verbs: ['delete'] });
    const slow = await json('unbind', 'unbind', 'shop', 'demo', '--yes', '--wait-for', '2s');
    expect(slow).toMatchObject({ code: 6, state: 'deleting' });
  });

  it('explain names draining', async () => {
    // After eight seconds, and held: a copy whose deletion is refused is not left behind.
    const explained = await until(async () => {
      const one = await explain('clusterbinding', 'demo');
      return endOf(one, 1)[0]?.startsWith('Drain instances in scope') === true && one;
    });
    refused();
    expect(explained).toMatchObject({ exists: true, controller: 'clusterbinding' });
    expect(endOf(explained, 4)).toEqual([
      'More APIs to clean up? → widgets.example.org',
      'Another non-deleting binding lists this API? → no',
      'Consumer CRD provides a usable API version? → yes',
      expect.stringMatching(/^Drain instances in scope Release their syncer finalizers → (\d left|not to the end)$/),
    ]);
  });
});

describe('wrong input', () => {
  it.concurrent.each<[string, string[], number, string]>([
    ['an unknown cluster', ['status', 'nowhere'], 3, 'no cluster nowhere'],
    ['an unknown command', ['dance'], 2, "unknown command 'dance'"],
    ['an unknown option', ['status', '--dance'], 2, "unknown option '--dance'"],
    ['a key that is none', ['explain', 'shop', 'widgets.example.org', 'a/b/c'], 2, ''],
    ['an API that is none', ['explain', 'shop', 'Widgets!', 'a'], 2, 'is no key'],
    ['a filter that is none', ['dlq', 'list', '--older-than', 'long'], 2, 'Say a duration'],
    ['a controller that is none', ['dlq', 'list', '--controller', 'x'], 2, 'Allowed choices'],
    ['a drop of everything', ['dlq', 'drop', '--all'], 2, '--all needs a filter'],
    ['a wait for a sweep', ['reconcile', 'shop', '--wait'], 2, '--wait needs a key'],
    ['an API that is not there', ['diff', 'shop', 'nothings.example.org'], 3, 'has no API'],
    ['a binding that is not there', ['unbind', 'shop', 'none'], 3, 'has no ClusterBinding none'],
    ['two cells', ['status', '--stage', 'prod'], 2, 'name two cells'],
    ['a file that is not there', ['bind', 'shop', '--provider', 'none.yaml', '--list'], 2, 'cannot be read (ENOENT)'],
    [
      'an EKS cluster in a directory',
      ['clusters', 'add', 'x', '--secret-arn', 'arn:aws:secretsmanager:eu-central-1:1:secret:x'],
      2,
      'deployed cell',
    ],
    ['a cluster in use', ['clusters', 'remove', 'shop', '--yes'], 4, 'objects with our finalizers'],
  ])('%s', async (_, args, code, says) => {
    const ran = await cli(...args);
    expect(ran.code, `said: ${ran.err}`).toBe(code);
    expect(ran.err).toContain(says);
    expect(ran.err).not.toMatch(/\n\s+at /);
  });

  it('shows a stack only when asked', async () => {
    expect((await cli('status', 'nowhere', '--debug')).err).toMatch(/\n\s+at /);
  });

  it('names a directory without a running cell, and still answers what needs no queue', async () => {
    const dir = join(fleet.folder, 'other');
    await import('node:fs/promises').then(({ mkdir }) => mkdir(dir));
    await copyFile(join(fleet.dir, 'shop.kubeconfig'), join(dir, 'shop.kubeconfig'));
    const ran = await kbindFleet(['--fleet', dir, 'dlq', 'list']);
    expect(ran).toMatchObject({ code: 5, err: expect.stringContaining('no cell runs here') });
    expect(await kbindFleet(['--fleet', dir, '--installation', 'kbind', 'clusters', 'list'])).toMatchObject({
      code: 0,
    });
  });
});

it('adds and removes a cluster', async () => {
  await writeFile(join(fleet.folder, 'second.yaml'), fleet.provider.embedded.kubeconfig);
  const file = join(fleet.folder, 'second.yaml');
  expect(await cli('clusters', 'add', 'second', '--kubeconfig', file)).toMatchObject({
    code: 4,
    err: expect.stringContaining('--install-crds'),
  });
  const added = await json('clusters add', 'clusters', 'add', 'second', '--kubeconfig', file, '--install-crds');
  expect(added).toMatchObject({ code: 0, action: 'added' });
  expect((await cli('clusters', 'add', 'second', '--kubeconfig', file)).code).toBe(4);
  expect(await json('clusters remove', 'clusters', 'remove', 'second', '--yes')).toMatchObject({ code: 0 });
  expect((await cli('clusters', 'list', '-o', 'name')).out).toBe('shop\n');
});

it('says of a provider that is down where it is needed, and answers for the fleet all the same', async () => {
  await fleet.provider.stop();
  const explained = await explain('connection', 'demo');
  expect(JSON.stringify(explained)).toMatch(/unavailable|ECONNREFUSED|refused|no answer/i);
  expect(await cli('status')).toMatchObject({ code: 0 });
});

it('gives partial results when a cluster hangs', async () => {
  const { createServer } = await import('node:net');
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as { port: number };
  const kubeconfig = (await readFile(join(fleet.dir, 'shop.kubeconfig'), 'utf8')).replace(
    /127\.0\.0\.1:\d+/,
    `127.0.0.1:${port}`,
  );
  await writeFile(join(fleet.dir, 'hangs.kubeconfig'), kubeconfig);
  const { code, clusters } = await json('status', 'status', '--timeout', '2');
  silent.close();
  expect(code).toBe(6);
  expect(clusters).toMatchObject([
    { name: 'hangs', problem: 'no answer within 2 s' },
    { name: 'shop', uid },
  ]);
});
