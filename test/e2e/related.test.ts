import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resources, type KubeObject } from '../../lib/model/api.ts';
import {
  base64,
  conditionOf,
  makeBinding,
  makeConnection,
  startF0,
  untilGone,
  untilObject,
  untilReady,
  type F0,
} from '../support/e2e/f0.ts';
import { staysTrue, until } from '../support/e2e/until.ts';
import { annotationsOf, at } from '../support/e2e/objects.ts';

const { secrets, configmaps, clusterBindings } = resources;
const widget = { labels: { app: 'widget' } };
const selector = { labelSelector: { matchLabels: { app: 'widget' } } };
const dataOf = (object: KubeObject | undefined): unknown => object?.['data'];
const isCopy = (object: KubeObject): void => {
  expect(object.metadata.labels?.['core.kbind.io/managed']).toBe('true');
  expect(annotationsOf(object)['core.kbind.io/related-binding']).toMatch(/.+/);
};
const unlabel = { metadata: { labels: { app: null } } };
/** An event brings it well before the 30-second refresh would have to. */
const BY_EVENT_MS = 20_000;

describe('related Secrets and ConfigMaps between two real clusters (scenarios S26–S34, field case 38)', () => {
  let f0: F0;
  beforeAll(async () => {
    f0 = await startF0();
    await makeConnection(f0.consumer);
    await makeBinding(f0.consumer, {
      relatedResources: [
        { resource: 'secrets', direction: 'FromProvider', selector },
        { resource: 'configmaps', direction: 'FromProvider', selector },
        { resource: 'secrets', direction: 'FromConsumer', selector },
        { resource: 'configmaps', direction: 'FromProvider', selector: { names: ['wanted'] } },
      ],
    });
    await untilReady(f0.consumer, clusterBindings, { name: 'widgets' });
  });
  afterAll(() => f0.stop());

  test('S26 a Secret comes down, marked', async () => {
    await f0.provider.make(secrets, at('widget-creds'), { metadata: widget, data: { token: base64('s3cr3t') } });
    const copy = await untilObject(f0.consumer, secrets, at('widget-creds'));
    expect(dataOf(copy)).toEqual({ token: base64('s3cr3t') });
    isCopy(copy);
  });

  test('a source that changes, and a copy that is deleted by hand, are seen by their events', async () => {
    await f0.provider.merge(secrets, at('widget-creds'), { data: { token: base64('next') } });
    await until(
      'the new token arrives',
      async () => JSON.stringify(dataOf(await f0.consumer.find(secrets, at('widget-creds')))).includes(base64('next')),
      { timeoutMs: BY_EVENT_MS },
    );
    const { uid } = (await f0.consumer.get(secrets, at('widget-creds'))).metadata;
    await f0.consumer.delete(secrets, at('widget-creds'));
    await until(
      'the copy is back',
      async () => {
        const copy = await f0.consumer.find(secrets, at('widget-creds'));
        return copy !== undefined && copy.metadata.uid !== uid;
      },
      { timeoutMs: BY_EVENT_MS },
    );
  });

  test('S27 a Secret that stops matching loses its copy; the source stays', async () => {
    await f0.provider.merge(secrets, at('widget-creds'), unlabel);
    await untilGone(f0.consumer, secrets, at('widget-creds'), BY_EVENT_MS);
    expect(await f0.provider.find(secrets, at('widget-creds'))).toBeDefined();
  });

  test('S28 a ConfigMap comes down, marked', async () => {
    await f0.provider.make(configmaps, at('widget-config'), { metadata: widget, data: { region: 'eu' } });
    const copy = await untilObject(f0.consumer, configmaps, at('widget-config'));
    expect(dataOf(copy)).toEqual({ region: 'eu' });
    isCopy(copy);
  });

  test('S29 a ConfigMap that stops matching loses its copy', async () => {
    await f0.provider.merge(configmaps, at('widget-config'), unlabel);
    await untilGone(f0.consumer, configmaps, at('widget-config'), BY_EVENT_MS);
  });

  test('S30 a foreign target neither changes nor is marked; the condition names it', async () => {
    await f0.consumer.make(configmaps, at('foreign-config'), { data: { region: 'FOREIGN' } });
    await f0.provider.make(configmaps, at('foreign-config'), { metadata: widget, data: { region: 'PROVIDER' } });
    await untilObject(f0.consumer, clusterBindings, { name: 'widgets' }, (binding) =>
      (conditionOf(binding, 'Conflicts')?.message ?? '').includes('ConfigMap default/foreign-config of the consumer'),
    );
    await staysTrue('the foreign ConfigMap is left alone', 3000, async () => {
      const target = await f0.consumer.get(configmaps, at('foreign-config'));
      return (
        JSON.stringify(dataOf(target)) === '{"region":"FOREIGN"}' &&
        target.metadata.labels?.['core.kbind.io/managed'] === undefined
      );
    });
    const binding = await f0.consumer.get(clusterBindings, { name: 'widgets' });
    expect(conditionOf(binding, 'Ready')?.status).toBe('True');
    expect(binding.status).toMatchObject({ boundAPIs: [{ conflictCount: 0 }] });
    await f0.provider.delete(configmaps, at('foreign-config'));
  });

  test('S31 a Secret goes up, marked', async () => {
    await f0.consumer.make(secrets, at('consumer-creds'), { metadata: widget, data: { password: base64('p') } });
    const copy = await untilObject(f0.provider, secrets, at('consumer-creds'));
    expect(dataOf(copy)).toEqual({ password: base64('p') });
    isCopy(copy);
  });

  test('S32 a Secret of the consumer that stops matching loses its copy', async () => {
    await f0.consumer.merge(secrets, at('consumer-creds'), unlabel);
    await untilGone(f0.provider, secrets, at('consumer-creds'), BY_EVENT_MS);
    expect(await f0.consumer.find(secrets, at('consumer-creds'))).toBeDefined();
  });

  test('S33 a selector by name takes that name alone', async () => {
    await f0.provider.make(configmaps, at('unwanted'), { data: { a: '1' } });
    await f0.provider.make(configmaps, at('wanted'), { data: { a: '1' } });
    await untilObject(f0.consumer, configmaps, at('wanted'));
    await staysTrue('the other is not copied', 3000, async () =>
      f0.consumer.find(configmaps, at('unwanted')).then((found) => found === undefined),
    );
  });

  test('38 nothing of a source’s metadata travels; types, immutable and token Secrets arrive and are replaced', async () => {
    const tracked = {
      labels: { app: 'widget', 'argocd.argoproj.io/instance': 'prod' },
      annotations: { 'meta.helm.sh/release-name': 'x', 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
    };
    await f0.provider.make(secrets, at('typed'), {
      metadata: tracked,
      type: 'example.org/a',
      data: { a: base64('1') },
    });
    await f0.provider.make(configmaps, at('fixed'), { metadata: tracked, immutable: true, data: { a: '1' } });
    await f0.provider.make(secrets, at('token'), {
      metadata: { ...tracked, annotations: { 'kubernetes.io/service-account.name': 'default' } },
      type: 'kubernetes.io/service-account-token',
    });
    const typed = await untilObject(f0.consumer, secrets, at('typed'), (copy) => copy['type'] === 'example.org/a');
    expect(Object.keys(typed.metadata.labels ?? {}).every((label) => label.startsWith('core.kbind.io/'))).toBe(true);
    expect(Object.keys(annotationsOf(typed)).every((name) => name.startsWith('core.kbind.io/'))).toBe(true);
    await untilObject(f0.consumer, secrets, at('token'), (copy) => copy['type'] === 'Opaque');
    await untilObject(f0.consumer, configmaps, at('fixed'), (copy) => copy['immutable'] === true);

    await f0.provider.delete(secrets, at('typed'));
    await f0.provider.make(secrets, at('typed'), {
      metadata: tracked,
      type: 'example.org/b',
      data: { a: base64('2') },
    });
    await f0.provider.delete(configmaps, at('fixed'));
    await f0.provider.make(configmaps, at('fixed'), { metadata: tracked, immutable: true, data: { a: '2' } });
    await untilObject(f0.consumer, secrets, at('typed'), (copy) => copy['type'] === 'example.org/b');
    await untilObject(f0.consumer, configmaps, at('fixed'), (copy) => JSON.stringify(copy['data']) === '{"a":"2"}');
  });

  test('S34 unbinding takes every copy along, and no source', async () => {
    await f0.consumer.merge(secrets, at('consumer-creds'), { metadata: widget });
    await untilObject(f0.provider, secrets, at('consumer-creds'));
    await f0.consumer.delete(clusterBindings, { name: 'widgets' });
    await untilGone(f0.consumer, clusterBindings, { name: 'widgets' });
    const marked = { labelSelector: 'core.kbind.io/managed=true' };
    for (const cluster of [f0.consumer, f0.provider]) {
      expect(await cluster.list(secrets, marked)).toEqual([]);
      expect(await cluster.list(configmaps, marked)).toEqual([]);
    }
    expect(await f0.provider.find(secrets, at('typed'))).toBeDefined();
    expect(await f0.consumer.find(secrets, at('consumer-creds'))).toBeDefined();
  });
});
