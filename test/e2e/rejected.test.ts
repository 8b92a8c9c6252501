import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resources, type KubeObject, type ResourceRef } from '../../lib/model/api.ts';
import type { DryRunAnswer, ListAnswer } from '../../lib/app/replay-handler.ts';
import { ApiError } from '../support/e2e/cluster.ts';
import {
  crdFor,
  installCrd,
  makeBinding,
  makeConnection,
  PRODUCT_USER,
  startF0,
  untilGone,
  untilObject,
  untilReady,
  widgets,
  type F0,
} from '../support/e2e/f0.ts';
import { ProcessCell } from '../support/e2e/process-cell.ts';
import { until } from '../support/e2e/until.ts';

const at = (name: string): { namespace: string; name: string } => ({ namespace: 'default', name });
const gauges: ResourceRef = { ...widgets, resource: 'gauges', kind: 'Gauge' };
const admission = (resource: string, kind: string): ResourceRef => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  resource,
  kind,
  namespaced: false,
});
const policies = admission('validatingadmissionpolicies', 'ValidatingAdmissionPolicy');
const policyBindings = admission('validatingadmissionpolicybindings', 'ValidatingAdmissionPolicyBinding');
const SAYS_NO = 'no forbidden sizes here';
/** What kube-apiserver takes: beyond 10,000 it calls an object no JSON. */
const LEVELS = 9_900;
/** A read, a create that is refused, and the look at what came of it. */
const REQUESTS_OF_A_LOOK = 3;

describe('an object that the provider refuses for good', () => {
  let f0: F0;
  let cell: ProcessCell;
  let uid: string;

  beforeAll(async () => {
    f0 = await startF0({ cell: false });
    uid = (await f0.consumer.get(resources.namespaces, { name: 'kube-system' })).metadata.uid;
    await installCrd(f0.provider, crdFor(gauges));
    await refuseForbiddenSizes();
    const kubeconfig = join(f0.fleetDir, 'consumer.kubeconfig');
    cell = await ProcessCell.start({ fleetDir: f0.fleetDir, kubeconfig });
    cell.startForwarder();
    cell.startContainer();
    await makeConnection(f0.consumer, { schema: { updatePolicy: 'Once' } });
    await makeBinding(f0.consumer, { apis: ['widgets.example.org', 'gauges.example.org'] });
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'widgets' });
    await stricterGauges();
  });
  afterAll(async () => {
    await cell.stop();
    await f0.stop();
  });

  const isRefused = (ref: ResourceRef, spec: object): Promise<boolean> =>
    f0.provider.make(ref, at('probe'), { spec }).then(
      () => f0.provider.delete(ref, at('probe')).then(() => false),
      (error: unknown) => error instanceof ApiError && error.status === 422,
    );

  /** A policy of the provider's admin, in force. */
  async function refuseForbiddenSizes(): Promise<void> {
    const rule = {
      apiGroups: ['example.org'],
      apiVersions: ['*'],
      operations: ['CREATE', 'UPDATE'],
      resources: ['widgets'],
    };
    await f0.provider.make(
      policies,
      { name: 'sizes' },
      {
        spec: {
          matchConstraints: { resourceRules: [rule] },
          validations: [{ expression: "!has(object.spec.size) || object.spec.size != 'forbidden'", message: SAYS_NO }],
        },
      },
    );
    await f0.provider.make(
      policyBindings,
      { name: 'sizes' },
      { spec: { policyName: 'sizes', validationActions: ['Deny'] } },
    );
    await until('the policy is in force', () => isRefused(widgets, { size: 'forbidden' }));
  }

  /** A CEL rule that the provider adds to its schema; the consumer’s CRD was installed without it and is not replaced. */
  async function stricterGauges(): Promise<void> {
    const name = 'gauges.example.org';
    const crd = await f0.provider.get(resources.crds, { name });
    const free = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    const size = { type: 'string', maxLength: 64 };
    const rule = { rule: "!has(self.size) || self.size != 'forbidden'", message: SAYS_NO };
    const kept = [{ rule: 'self == oldSelf', message: 'the region is for ever' }];
    const region = { type: 'string', maxLength: 64, 'x-kubernetes-validations': kept };
    const spec = { ...free, properties: { size, region }, 'x-kubernetes-validations': [rule] };
    const schema = { openAPIV3Schema: { type: 'object', properties: { spec, status: free } } };
    const { versions } = crd.spec as { versions: object[] };
    await f0.provider.replace(resources.crds, {
      ...crd,
      spec: { ...(crd.spec as object), versions: versions.map((version) => ({ ...version, schema })) },
    });
    await until('the rule is in force', () => isRefused(gauges, { size: 'forbidden' }));
  }

  const lettersAbout = (name: string): readonly string[] =>
    cell.bodies('deadLetters').filter((body) => body.includes(`"name":"${name}"`));
  const eventsAbout = async (name: string): Promise<KubeObject[]> =>
    (await f0.consumer.list(resources.events)).filter(
      (event) => (event['involvedObject'] as { name?: string } | undefined)?.name === name,
    );
  const asked = async (name: string): Promise<string[]> =>
    (await f0.provider.requestsOf(PRODUCT_USER))
      .filter((line) => line.name === name)
      .map(({ verb, status }) => `${verb} ${status}`);
  /** Eleven minutes pass for the Event, and the container that wrote it is no more. */
  async function elevenMinutesLater(name: string): Promise<void> {
    const [event] = await eventsAbout(name);
    if (event === undefined) throw new Error(`no Event about ${name}`);
    const lastTimestamp = new Date(Date.now() - 660_000).toISOString().replace(/\.\d+/, '');
    await f0.consumer.merge(resources.events, { namespace: 'default', name: event.metadata.name }, { lastTimestamp });
    await cell.replaceContainer();
  }

  test.each([
    ['by its admission', widgets],
    ['by a CEL rule of its schema', gauges],
  ] as const)(
    '%s: one dead letter, one Event that counts up, and no traffic but a look for each backstop',
    async (_how, ref) => {
      const name = `unwanted-${ref.resource}`;
      await f0.consumer.make(ref, at(name), { spec: { size: 'forbidden' } });
      await until('the dead letter is there', () => lettersAbout(name).length > 0);
      await until('nothing is under way', () => cell.isIdle());
      expect(JSON.parse(lettersAbout(name)[0] ?? '')).toMatchObject({
        attempts: 1,
        error: { class: 'invalid', status: 422, verb: 'create', side: 'provider', object: `default/${name}` },
        request: { api: `${ref.resource}.example.org`, namespace: 'default', name, cluster: uid },
      });
      expect(lettersAbout(name)[0]).not.toContain('forbidden"');
      const first = (await asked(name)).length;
      const eventSays = async (): Promise<unknown> => {
        const [event, ...others] = await eventsAbout(name);
        expect(others).toEqual([]);
        expect(String(event?.['message'])).toContain(SAYS_NO);
        return [event?.['reason'], event?.['count']];
      };
      await cell.backstop(uid);
      expect((await asked(name)).slice(first)).toHaveLength(REQUESTS_OF_A_LOOK);
      expect(await eventSays()).toEqual(['Invalid', 1]);
      await elevenMinutesLater(name);
      await cell.backstop(uid);
      expect((await asked(name)).slice(first)).toHaveLength(2 * REQUESTS_OF_A_LOOK);
      expect(await eventSays()).toEqual(['Invalid', 2]);
      expect(lettersAbout(name)).toHaveLength(1);
    },
  );

  test.each([
    ['lists', `{"deep":${'['.repeat(LEVELS)}1.5${']'.repeat(LEVELS)}}`],
    ['maps', `${'{"a":'.repeat(LEVELS)}1.5${'}'.repeat(LEVELS)}`],
  ])(
    '%s nested as deeply as an API server takes: said on the object, and nobody else is held up',
    async (what, spec) => {
      const [deep, beside] = [`deep-${what}`, `beside-deep-${what}`];
      const head = `"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"${deep}"}`;
      await f0.consumer.create(widgets, `{${head},"spec":${spec}}`, 'default');
      await until('the dead letter is there', () => lettersAbout(deep).length > 0);
      expect(JSON.parse(lettersAbout(deep)[0] ?? '')).toMatchObject({ attempts: 1, error: { class: 'invalid' } });
      const events = await eventsAbout(deep);
      expect(events.map((event) => event['message'])).toEqual([
        expect.stringMatching(/cannot be copied: nested more than/),
      ]);
      await f0.consumer.make(widgets, at(beside), { spec: { size: 'small' } });
      await untilObject(f0.provider, widgets, at(beside));
      // The backstop lists all of them, and repairs what no event told of.
      await f0.provider.merge(widgets, at(beside), { spec: { size: 'changed by hand' } });
      await cell.backstop(uid);
      await untilObject(f0.provider, widgets, at(beside), (copy) => (copy.spec as { size: string }).size === 'small');
      expect(await f0.provider.find(widgets, at(deep))).toBeUndefined();
      expect(lettersAbout(deep)).toHaveLength(1);
      await f0.consumer.delete(widgets, at(deep));
      await untilGone(f0.consumer, widgets, at(deep));
    },
  );

  test('case 17: an immutable field that is edited is refused with the provider’s words, the copy stays whole, and mending heals', async () => {
    const name = 'moves';
    const region = (of: KubeObject): unknown => (of.spec as { region?: string }).region;
    await f0.consumer.make(gauges, at(name), { spec: { size: 'small', region: 'eu' } });
    const copy = await untilObject(f0.provider, gauges, at(name));
    await f0.consumer.merge(gauges, at(name), { spec: { region: 'us' } });
    await until('the dead letter is there', () => lettersAbout(name).length > 0);
    const events = await eventsAbout(name);
    expect(events.map((event) => event['message'])).toEqual([
      expect.stringMatching(/spec\.region.*the region is for ever/),
    ]);
    const kept = await f0.provider.get(gauges, at(name));
    expect([region(kept), kept.metadata.uid, kept.metadata.generation]).toEqual(['eu', copy.metadata.uid, 1]);
    await f0.consumer.merge(gauges, at(name), { spec: { region: 'eu', size: 'medium' } });
    await untilObject(f0.provider, gauges, at(name), ({ spec }) => (spec as { size: string }).size === 'medium');
    expect(lettersAbout(name)).toHaveLength(1);
  });

  test('once the object is mended it arrives, and its dead letter, healed by then, can be dropped', async () => {
    const name = 'unwanted-widgets';
    const filter = { name };
    const before = (await cell.invoke('replay', { action: 'dry-run', filter })) as DryRunAnswer;
    expect(before.entries.map(({ prospect }) => prospect)).toEqual(['would-act']);
    await f0.consumer.merge(widgets, at(name), { spec: { size: 'small' } });
    await untilObject(f0.provider, widgets, at(name));
    await until('nothing is under way', () => cell.isIdle());
    const listed = (await cell.invoke('replay', { action: 'list', filter })) as ListAnswer;
    expect(listed.groups).toMatchObject([{ error: 'invalid', status: 422, api: 'widgets.example.org', entries: 1 }]);
    const healed = (await cell.invoke('replay', { action: 'dry-run', filter })) as DryRunAnswer;
    expect(healed.entries.map(({ prospect }) => prospect)).toEqual(['healed']);
    expect(await cell.invoke('replay', { action: 'drop' })).toMatchObject({ dropped: 4, kept: 1 });
    expect(lettersAbout(name)).toEqual([]);
    expect(lettersAbout('unwanted-gauges')).toHaveLength(1);
  });

  test('once the provider takes it, a replay makes it arrive at once', async () => {
    const name = 'unwanted-later';
    await f0.consumer.make(widgets, at(name), { spec: { size: 'forbidden' } });
    await until('the dead letter is there', () => lettersAbout(name).length === 1);
    await f0.provider.delete(policyBindings, { name: 'sizes' });
    await until('the policy is lifted', async () => !(await isRefused(widgets, { size: 'forbidden' })));
    expect(await f0.provider.find(widgets, at(name))).toBeUndefined();
    const replayed = await cell.invoke('replay', { action: 'replay', filter: { name } });
    expect(replayed).toMatchObject({ matched: 1, enqueued: 1, notRemoved: 0 });
    await untilObject(f0.provider, widgets, at(name));
    expect(lettersAbout(name)).toEqual([]);
  });
});
