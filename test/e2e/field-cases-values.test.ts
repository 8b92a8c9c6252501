import { createServer, type Server } from 'node:https';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Authority } from '../../lib/embedded/pki/authority.ts';
import { resources, type KubeObject, type ResourceRef } from '../../lib/model/api.ts';
import { ApiError } from '../support/e2e/cluster.ts';
import {
  base64,
  conditionOf,
  crdFor,
  installCrd,
  makeBinding,
  makeConnection,
  PRODUCT_USER,
  startBound,
  untilGone,
  untilObject,
  untilReady,
  widgets,
  type F0,
} from '../support/e2e/f0.ts';
import { until } from '../support/e2e/until.ts';
import { type Loose, api, at, specOf, statusOf } from '../support/e2e/objects.ts';

/** A schema with typed members of spec and status. */
const typed = (spec: Loose, status: Loose = {}): Loose => ({
  type: 'object',
  properties: {
    spec: { type: 'object', properties: spec },
    status: { type: 'object', properties: status },
  },
});
const TEXT = { type: 'string' };
/** Requests of one reconcile of what is refused: a ten-minute backstop may fall into the time that is looked at. */
const ONE_LOOK = 6;

describe('field cases of values and of what a provider refuses', () => {
  let f0: F0;
  const webhooks: Server[] = [];
  beforeAll(async () => {
    f0 = await startBound();
    await makeConnection(f0.consumer, { name: 'as-is', schema: { pullPolicy: 'None' } });
  });
  afterAll(async () => {
    for (const server of webhooks) server.close();
    await f0.stop();
  });

  async function bind(name: string, apis: readonly string[], connection = 'demo-provider'): Promise<void> {
    await makeBinding(f0.consumer, { name, apis, connection });
    await untilReady(f0.consumer, resources.clusterBindings, { name });
  }
  const eventsAbout = async (name: string): Promise<KubeObject[]> =>
    (await f0.consumer.list(resources.events)).filter(
      (event) => (event['involvedObject'] as { name?: string } | undefined)?.name === name,
    );
  /** Waits for a Warning Event about the object whose message fits, and answers with the message. */
  const untilEvent = (name: string, says: RegExp): Promise<string> =>
    until(
      `an Event about ${name} says ${String(says)}`,
      async () => (await eventsAbout(name)).map((event) => String(event['message'])).find((text) => says.test(text)),
      { seen: () => eventsAbout(name) },
    );
  /** Requests of the product for one object on a side. */
  const asked = async (side: 'consumer' | 'provider', name: string): Promise<string[]> =>
    (await f0[side].requestsOf(PRODUCT_USER)).filter((line) => line.name === name).map(({ verb }) => verb);
  /** Requests about an object in that time, once its echoes have died down: what loops does so at once. */
  async function quietAbout(name: string, forMs = 3_000): Promise<number> {
    const count = async (): Promise<number> =>
      (await asked('consumer', name)).length + (await asked('provider', name)).length;
    const within = async (ms: number): Promise<number> => {
      const before = await count();
      await new Promise((resolve) => setTimeout(resolve, ms));
      return (await count()) - before;
    };
    // Of a new API the forwarder's watches may stand some seconds after the binding is Ready; their sweep looks once more.
    await until('echoes have died down', async () => (await within(3_000)) === 0, { timeoutMs: 40_000 });
    return within(forMs);
  }

  /** A webhook on the provider that judges every write of one API. */
  async function startWebhook(resource: string, kind: 'Mutating' | 'Validating', judgement: Loose): Promise<void> {
    const authority = await Authority.create('webhook');
    const { certificate, key } = await authority.server();
    const server = createServer({ cert: certificate, key }, (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const review = JSON.parse(Buffer.concat(chunks).toString()) as { request: { uid: string } };
        const answer = { uid: review.request.uid, ...judgement };
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: answer }));
      });
    });
    webhooks.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const configurations: ResourceRef = {
      group: 'admissionregistration.k8s.io',
      version: 'v1',
      resource: `${kind.toLowerCase()}webhookconfigurations`,
      kind: `${kind}WebhookConfiguration`,
      namespaced: false,
    };
    await f0.provider.make(
      configurations,
      { name: resource },
      {
        webhooks: [
          {
            name: `${resource}.example.org`,
            clientConfig: { url: `https://127.0.0.1:${port}/`, caBundle: base64(authority.certificate) },
            rules: [
              {
                apiGroups: ['example.org'],
                apiVersions: ['*'],
                operations: ['CREATE', 'UPDATE'],
                resources: [resource],
              },
            ],
            sideEffects: 'None',
            admissionReviewVersions: ['v1'],
            failurePolicy: 'Fail',
          },
        ],
      },
    );
  }

  /** Characters of the longest blob that the provider's etcd takes in an object of nobody's. */
  async function biggestThatFits(): Promise<number> {
    let [low, high] = [1_400_000, 1_600_000];
    while (high - low > 16) {
      const middle = Math.floor((low + high) / 2);
      const taken = await f0.provider.make(widgets, at('probe'), { spec: { blob: 'x'.repeat(middle) } }).then(
        () => true,
        () => false,
      );
      if (taken) await f0.provider.delete(widgets, at('probe'));
      [low, high] = taken ? [middle, high] : [low, middle];
    }
    return low;
  }

  describe.concurrent('side by side, each with an API of its own', () => {
    test('case 1: integers past 2^53 in a typed API: spec, status and a schema default arrive digit for digit, once', async () => {
      const quotas = api('quotas', 'Quota');
      const integer = { type: 'integer', format: 'int64' };
      const schema = typed(
        { quota: integer, fallback: { ...integer, default: 'BIG' }, ratio: { type: 'number' } },
        { bytes: integer },
      );
      const crd = JSON.stringify(crdFor(quotas, { schema })).replace('"BIG"', '9007199254740993');
      await f0.provider.create(resources.crds, crd);
      await until('it is served', () => f0.provider.list(quotas).then(() => true));
      await bind('quotas', ['quotas.example.org']);
      expect(await f0.consumer.text(resources.crds, { name: 'quotas.example.org' })).toContain(
        '"default":9007199254740993',
      );
      await until('it is served', () => f0.consumer.list(quotas).then(() => true));
      await f0.consumer.create(
        quotas,
        '{"apiVersion":"example.org/v1","kind":"Quota","metadata":{"name":"big"},"spec":{"quota":9007199254740993,"ratio":1.0}}',
        'default',
      );
      const copy = await untilObject(f0.provider, quotas, at('big'));
      const text = await f0.provider.text(quotas, at('big'));
      expect(text).toContain('"quota":9007199254740993');
      expect(text).toContain('"fallback":9007199254740993');
      const withStatus = `{"apiVersion":"example.org/v1","kind":"Quota","metadata":{"name":"big","resourceVersion":"${copy.metadata.resourceVersion}"},"status":{"bytes":9223372036854775807}}`;
      await f0.provider.put(quotas, at('big'), withStatus, '/status');
      await until('the status arrives', async () =>
        (await f0.consumer.text(quotas, at('big'))).includes('"bytes":9223372036854775807'),
      );
      const hash = async (): Promise<string | undefined> =>
        (await f0.consumer.get(resources.crds, { name: 'quotas.example.org' })).metadata.annotations?.[
          'core.kbind.io/schema-hash'
        ];
      await quietAbout('big', 0);
      const [before, version] = [await hash(), (await f0.provider.get(quotas, at('big'))).metadata.resourceVersion];
      await f0.consumer.merge(
        resources.clusterBindings,
        { name: 'quotas' },
        { metadata: { labels: { pass: 'again' } } },
      );
      await f0.consumer.merge(quotas, at('big'), { metadata: { labels: { pass: 'again' } } });
      await quietAbout('big', 2_500);
      expect(await hash()).toBe(before);
      expect((await f0.provider.get(quotas, at('big'))).metadata.resourceVersion).toBe(version);
    });

    test('case 14: duplicate keys in the provider’s map list: its words in a Warning Event, nothing is dropped, others go on', async () => {
      const services = api('services', 'Service');
      const ports = {
        type: 'array',
        items: { type: 'object', properties: { name: TEXT, port: { type: 'integer' } }, required: ['name'] },
      };
      const mapList = { ...ports, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] };
      await installCrd(f0.provider, crdFor(services, { schema: typed({ ports: mapList }) }));
      await installCrd(f0.consumer, crdFor(services, { exported: false, schema: typed({ ports }) }));
      await bind('services', ['services.example.org'], 'as-is');
      const twice = [
        { name: 'http', port: 80 },
        { name: 'http', port: 81 },
      ];
      await f0.consumer.make(services, at('twice'), { spec: { ports: twice } });
      expect(await untilEvent('twice', /uplicate/)).toContain('ports');
      expect(specOf(await f0.consumer.get(services, at('twice')))).toEqual({ ports: twice });
      expect(await f0.provider.find(services, at('twice'))).toBeUndefined();
      await f0.consumer.make(services, at('fine'), { spec: { ports: [{ name: 'http', port: 80 }] } });
      await untilObject(f0.provider, services, at('fine'));
      expect(await quietAbout('twice')).toBeLessThanOrEqual(ONE_LOOK);
      // An edit to two of a name is refused as well, and the old copy stays whole.
      await f0.consumer.merge(services, at('fine'), { spec: { ports: twice } });
      await untilEvent('fine', /uplicate/);
      expect(specOf(await f0.provider.get(services, at('fine')))).toEqual({ ports: [{ name: 'http', port: 80 }] });
      await f0.consumer.merge(services, at('twice'), { spec: { ports: [{ name: 'http', port: 80 }] } });
      await untilObject(f0.provider, services, at('twice'));
    });

    test('case 16 a: a provider that alters the spec in each write is not fought: few writes, and an Event says so', async () => {
      const patch = base64(JSON.stringify([{ op: 'add', path: '/spec/size', value: 'small' }]));
      await startWebhook('altered', 'Mutating', { allowed: true, patchType: 'JSONPatch', patch });
      const altered = api('altered', 'Altered');
      await installCrd(f0.provider, crdFor(altered));
      await bind('altered', ['altered.example.org']);
      await f0.consumer.make(altered, at('fought'), { spec: { size: 'large' } });
      const copy = await untilObject(f0.provider, altered, at('fought'));
      expect(specOf(copy)).toEqual({ size: 'small' });
      await untilEvent('fought', /alters the spec/);
      await f0.consumer.merge(altered, at('fought'), { metadata: { labels: { pass: 'again' } } });
      expect(await quietAbout('fought')).toBeLessThan(10);
      expect((await f0.provider.get(altered, at('fought'))).metadata.generation).toBe(1);
    });

    test('seen failing: refused by the provider’s admission: an Event with its words, no loop, others go on', async () => {
      await startWebhook('denied', 'Validating', { allowed: false, status: { message: 'no room on a Friday' } });
      const denied = api('denied', 'Denied');
      await installCrd(f0.provider, crdFor(denied));
      await bind('denied', ['denied.example.org']);
      await f0.consumer.make(denied, at('unwanted'), { spec: { size: 's' } });
      await untilEvent('unwanted', /no room on a Friday/);
      await f0.consumer.make(widgets, at('beside-denied'), { spec: { size: 's' } });
      await untilObject(f0.provider, widgets, at('beside-denied'));
      expect(await quietAbout('unwanted')).toBeLessThanOrEqual(ONE_LOOK);
      await f0.consumer.delete(denied, at('unwanted'));
      await untilGone(f0.consumer, denied, at('unwanted'));
    });

    test('case 16 b: a field that only the provider’s schema knows keeps its default and does not appear on the consumer', async () => {
      const tiers = api('tiers', 'Tier');
      await installCrd(
        f0.provider,
        crdFor(tiers, { schema: typed({ size: TEXT, tier: { type: 'string', default: 'basic' } }) }),
      );
      await installCrd(f0.consumer, crdFor(tiers, { exported: false, schema: typed({ size: TEXT }) }));
      await bind('tiers', ['tiers.example.org'], 'as-is');
      await f0.consumer.make(tiers, at('defaulted'), { spec: { size: 's' } });
      await untilObject(f0.provider, tiers, at('defaulted'), (copy) => specOf(copy)['tier'] === 'basic');
      await f0.consumer.merge(tiers, at('defaulted'), { spec: { size: 'm' } });
      const copy = await untilObject(f0.provider, tiers, at('defaulted'), (object) => specOf(object)['size'] === 'm');
      expect(specOf(copy)).toEqual({ size: 'm', tier: 'basic' });
      expect(specOf(await f0.consumer.get(tiers, at('defaulted')))).toEqual({ size: 'm' });
      await f0.cell.waitIdle();
      await f0.consumer.merge(tiers, at('defaulted'), { metadata: { labels: { pass: 'again' } } });
      await quietAbout('defaulted', 1_500);
      expect((await f0.provider.get(tiers, at('defaulted'))).metadata.generation).toBe(copy.metadata.generation);
    });

    test('case 17: accepted here, refused there: an Event for each with the reason, the old copy whole, healed by the next edit', async () => {
      const plans = api('plans', 'Plan');
      const schema = (rule?: Loose): Loose => typed({ size: { ...TEXT, ...rule }, region: TEXT });
      await installCrd(f0.provider, crdFor(plans, { schema: schema() }));
      await makeConnection(f0.consumer, { name: 'once', schema: { updatePolicy: 'Once' } });
      await bind('plans', ['plans.example.org'], 'once');
      for (const name of ['grows', 'moves', 'calm']) {
        await f0.consumer.make(plans, at(name), { spec: { size: 's', region: 'eu' } });
        await untilObject(f0.provider, plans, at(name));
      }
      const uid = (await f0.provider.get(plans, at('grows'))).metadata.uid;
      const crd = await f0.provider.get(resources.crds, { name: 'plans.example.org' });
      const stricter = typed({ size: { ...TEXT, enum: ['s', 'm'] }, region: { ...TEXT, enum: ['eu'] } });
      const versions = (crd.spec as { versions: Loose[] }).versions;
      await f0.provider.replace(resources.crds, {
        ...crd,
        spec: {
          ...(crd.spec as Loose),
          versions: versions.map((version) => ({ ...version, schema: { openAPIV3Schema: stricter } })),
        },
      } as unknown as KubeObject);
      await until('the provider refuses xxl', () =>
        f0.provider.make(plans, at('probe'), { spec: { size: 'xxl' } }).then(
          () => f0.provider.delete(plans, at('probe')).then(() => false),
          (error: unknown) => error instanceof ApiError && error.status === 422,
        ),
      );
      await f0.consumer.merge(plans, at('grows'), { spec: { size: 'xxl', region: 'eu' } });
      await f0.consumer.merge(plans, at('moves'), { spec: { region: 'us' } });
      expect(await untilEvent('grows', /refuses/)).toContain('spec.size');
      expect(await untilEvent('moves', /refuses/)).toContain('spec.region');
      await f0.consumer.merge(plans, at('calm'), { spec: { size: 'm' } });
      await untilObject(f0.provider, plans, at('calm'), (copy) => specOf(copy)['size'] === 'm');
      const kept = await f0.provider.get(plans, at('grows'));
      expect(specOf(kept)).toEqual({ size: 's', region: 'eu' });
      expect(kept.metadata.uid).toBe(uid);
      expect(await quietAbout('grows')).toBeLessThanOrEqual(ONE_LOOK);
      await f0.consumer.merge(plans, at('grows'), { spec: { size: 'm' } });
      await untilObject(f0.provider, plans, at('grows'), (copy) => specOf(copy)['size'] === 'm');
    });

    test('case 18: an object that fits here and not there: an Event, then quiet, nothing that grows it; others go on', async () => {
      const fits = await biggestThatFits();
      await f0.consumer.make(widgets, at('huge'), { spec: { blob: 'x'.repeat(fits - 250) } });
      await untilEvent('huge', /too large/);
      expect(await f0.provider.find(widgets, at('huge'))).toBeUndefined();
      await f0.consumer.make(widgets, at('beside-huge'), { spec: { size: 's' } });
      await untilObject(f0.provider, widgets, at('beside-huge'));
      expect(await quietAbout('huge')).toBeLessThanOrEqual(ONE_LOOK);
      const source = await f0.consumer.get(widgets, at('huge'));
      expect(source.metadata.annotations).toBeUndefined();
      expect(source.status).toBeUndefined();
      await f0.consumer.delete(widgets, at('huge'));
      await untilGone(f0.consumer, widgets, at('huge'));
      // Down: a status that does not fit beside the spec.
      await f0.consumer.make(widgets, at('heavy'), { spec: { blob: 'x'.repeat(1_000) } });
      await untilObject(f0.provider, widgets, at('heavy'));
      await f0.consumer.merge(widgets, at('heavy'), { metadata: { annotations: { mine: 'y'.repeat(200_000) } } });
      await f0.provider.setStatus(widgets, at('heavy'), { blob: 'z'.repeat(1_450_000) });
      await untilEvent('heavy', /status.*too large/);
      expect(await quietAbout('heavy')).toBeLessThanOrEqual(ONE_LOOK);
      await f0.provider.setStatus(widgets, at('heavy'), { blob: null, phase: 'Up' });
      await untilObject(f0.consumer, widgets, at('heavy'), (object) => statusOf(object)['phase'] === 'Up');
    });

    test('case 19: a Connection whose Lease name would be too long goes without a heartbeat, and syncs', async () => {
      const name = `${'c'.repeat(61)}.${'d'.repeat(61)}.${'e'.repeat(61)}.${'f'.repeat(64)}`.slice(0, 250);
      const longs = api('longs', 'Long');
      await installCrd(f0.provider, crdFor(longs));
      await makeConnection(f0.consumer, { name });
      await bind('longs', ['longs.example.org'], name);
      await f0.consumer.make(longs, at('synced'), { spec: { a: 1 } });
      await untilObject(f0.provider, longs, at('synced'));
      const leases = await f0.provider.list(resources.leases);
      expect(leases.filter(({ metadata }) => metadata.name.startsWith('ccc'))).toEqual([]);
      expect(leases.some(({ metadata }) => metadata.name.startsWith('demo-provider-'))).toBe(true);
    });

    test('case 35: of two versions behind a conversion webhook with a caBundle one is kept, without the webhook; the condition lists the other', async () => {
      const multis = api('multis', 'Multi');
      const authority = await Authority.create('conversion');
      const crd = crdFor(multis);
      const spec = crd['spec'] as { versions: Loose[] };
      const [v1] = spec.versions;
      const clientConfig = {
        service: { namespace: 'default', name: 'nowhere' },
        caBundle: base64(authority.certificate),
      };
      await installCrd(f0.provider, {
        ...crd,
        spec: {
          ...spec,
          versions: [{ ...v1, name: 'v1beta1', storage: false }, v1],
          conversion: { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'], clientConfig } },
        },
      });
      await bind('multis', ['multis.example.org']);
      const pulled = await f0.consumer.get(resources.crds, { name: 'multis.example.org' });
      expect(specOf(pulled)['conversion']).toEqual({ strategy: 'None' });
      const binding = await f0.consumer.get(resources.clusterBindings, { name: 'multis' });
      expect(conditionOf(binding, 'Ready')?.message).toContain('v1beta1');
      await f0.consumer.make(multis, at('m'), { spec: { a: 1 } });
      await untilObject(f0.provider, multis, at('m'));
      expect((await f0.consumer.list(multis)).length).toBe(1);
      await f0.consumer.delete(resources.clusterBindings, { name: 'multis' });
      await untilGone(f0.consumer, resources.crds, { name: 'multis.example.org' });
    });
  });

  test('case 3: date-times are strings: no milliseconds, no other zone, and no write after a restart', async () => {
    const backups = api('backups', 'Backup');
    const dateTime = { type: 'string', format: 'date-time' };
    await installCrd(f0.provider, crdFor(backups, { schema: typed({ startAt: dateTime }, { lastBackup: dateTime }) }));
    await bind('backups', ['backups.example.org']);
    await f0.consumer.make(backups, at('daily'), { spec: { startAt: '2024-01-01T00:00:00+02:00' } });
    await untilObject(f0.provider, backups, at('daily'));
    await f0.provider.setStatus(backups, at('daily'), { lastBackup: '2025-11-18T08:20:01Z' });
    const source = await untilObject(f0.consumer, backups, at('daily'), ({ status }) => status !== undefined);
    expect(statusOf(source)).toEqual({ lastBackup: '2025-11-18T08:20:01Z' });
    const copy = await f0.provider.get(backups, at('daily'));
    expect(specOf(copy)).toEqual({ startAt: '2024-01-01T00:00:00+02:00' });
    await f0.cell.waitIdle();
    await f0.restartCell();
    await f0.consumer.make(backups, at('later'), { spec: { startAt: '2024-01-01T00:00:00Z' } });
    await untilObject(f0.provider, backups, at('later'));
    await f0.cell.waitIdle();
    expect((await f0.provider.get(backups, at('daily'))).metadata.resourceVersion).toBe(copy.metadata.resourceVersion);
    expect((await f0.consumer.get(backups, at('daily'))).metadata.resourceVersion).toBe(
      source.metadata.resourceVersion,
    );
  });

  test('case 12: two bindings with two APIs, one cluster-scoped: after a restart every change arrives, both ways', async () => {
    const zones = api('zones', 'Zone', false);
    await installCrd(f0.provider, crdFor(zones));
    await bind('zones', ['zones.example.org']);
    const made = [
      [widgets, at('both-ways')],
      [zones, { name: 'both-ways' }],
    ] as const;
    for (const [ref, key] of made) {
      await f0.consumer.make(ref, key, { spec: { step: 1 } });
      await untilObject(f0.provider, ref, key);
    }
    await f0.restartCell();
    for (const [ref, key] of made) {
      await f0.consumer.merge(ref, key, { spec: { step: 2 } });
      await f0.provider.setStatus(ref, key, { phase: 'Up' });
    }
    for (const [ref, key] of made) {
      await untilObject(f0.provider, ref, key, (copy) => specOf(copy)['step'] === 2);
      await untilObject(f0.consumer, ref, key, (source) => statusOf(source)['phase'] === 'Up');
    }
  });
});
