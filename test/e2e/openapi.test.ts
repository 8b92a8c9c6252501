import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { resources, type KubeObject, type ResourceRef } from '../../lib/model/api.ts';
import { usableVersion } from '../../lib/model/crd.ts';
import type { ConnectionStatus } from '../../lib/model/kinds.ts';
import {
  conditionOf,
  crdFor,
  ensureNamespace,
  installCrd,
  isTrue,
  makeBinding,
  makeConnection,
  makeKubeconfigSecret,
  startF0,
  untilGone,
  untilObject,
  untilReady,
  widgets,
  type F0,
} from '../support/e2e/f0.ts';
import { until } from '../support/e2e/until.ts';
import { fidelityCrd, fidelitySpec } from '../support/openapi/fidelity.ts';

const OPENAPI = { source: 'OpenAPI' };
const odd = (resource: string, kind: string): ResourceRef => ({
  group: 'odd.example.org',
  version: 'v1',
  resource,
  kind,
  namespaced: true,
});
const fidelities = odd('fidelities', 'Fidelity');
const apiServices: ResourceRef = {
  group: 'apiregistration.k8s.io',
  version: 'v1',
  resource: 'apiservices',
  kind: 'APIService',
  namespaced: false,
};
const roles: ResourceRef = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  resource: 'clusterroles',
  kind: 'ClusterRole',
  namespaced: false,
};
const roleBindings: ResourceRef = { ...roles, resource: 'clusterrolebindings', kind: 'ClusterRoleBinding' };

const statusOf = (object: KubeObject): ConnectionStatus => object.status as unknown as ConnectionStatus;
const exportsOf = (object: KubeObject): string[] => (statusOf(object).exportedAPIs ?? []).map(({ name }) => name);
const messageOf = (object: KubeObject, type: string): string => conditionOf(object, type)?.message ?? '';
const sameSpec = (a: KubeObject, b: KubeObject): boolean => JSON.stringify(a.spec) === JSON.stringify(b.spec);

/** Whether the first has everything of the second, lists in full length. */
const contains = (whole: unknown, part: unknown): boolean => {
  if (typeof part !== 'object' || part === null) return whole === part;
  if (typeof whole !== 'object' || whole === null) return false;
  if (Array.isArray(part) && (!Array.isArray(whole) || whole.length !== part.length)) return false;
  const members = whole as Readonly<Record<string, unknown>>;
  return Object.entries(part).every(([name, value]) => contains(members[name], value));
};

describe('the OpenAPI source', () => {
  let f0: F0;
  beforeAll(async () => {
    f0 = await startF0({ exported: [crdFor(widgets, { exported: false })] });
  });
  afterAll(() => f0.stop());

  const crd = (name: string): Promise<KubeObject | undefined> => f0.consumer.find(resources.crds, { name });
  const hasEvent = async (reason: string, object: string): Promise<boolean> => {
    const events = await f0.consumer.list(resources.events, {});
    return events.some((event) => {
      const { involvedObject } = event as unknown as { involvedObject?: { name?: string } };
      return event['reason'] === reason && involvedObject?.name === object;
    });
  };

  test('S35 everything is exported without a label, and nothing is installed before a binding names it', async () => {
    await makeConnection(f0.consumer, { schema: OPENAPI });
    const ready = await untilReady(f0.consumer, resources.connections, { name: 'demo-provider' });
    expect(statusOf(ready).activeSchemaSource).toBe('OpenAPI');
    expect(exportsOf(ready)).toEqual(['widgets.example.org']);
    expect(conditionOf(ready, 'SchemaInSync')?.status).toBe('True');
    expect(await crd('widgets.example.org')).toBeUndefined();
  });

  test('S36 a binding installs the synthesized CRD, and its instances reach the provider', async () => {
    await makeBinding(f0.consumer);
    const binding = await untilReady(f0.consumer, resources.clusterBindings, { name: 'widgets' });
    const installed = await f0.consumer.get(resources.crds, { name: 'widgets.example.org' });
    expect(installed.metadata.labels).toMatchObject({ 'core.kbind.io/managed': 'true' });
    expect(installed.metadata.annotations).toMatchObject({ 'core.kbind.io/connection': 'demo-provider' });
    const hash = installed.metadata.annotations?.['core.kbind.io/schema-hash'] ?? 'none';
    expect(JSON.stringify(binding.status)).toContain(hash);
    const key = { namespace: 'default', name: 'openapi-widget' };
    await f0.consumer.make(widgets, key, { spec: { size: 'large' } });
    await untilObject(f0.provider, widgets, key, (copy) => JSON.stringify(copy.spec) === '{"size":"large"}');
    await f0.provider.setStatus(widgets, key, { phase: 'Done' });
    await untilObject(f0.consumer, widgets, key, (made) => JSON.stringify(made.status) === '{"phase":"Done"}');
  });

  test('36. int-or-string, maps, lists of lists, an embedded resource and rules survive; one bad API holds up nobody', async () => {
    // A binding that waits for an API is set up when it appears. Its short names come along (L17).
    await makeBinding(f0.consumer, { name: 'odd', apis: ['fidelities.odd.example.org'] });
    await untilObject(f0.consumer, resources.clusterBindings, { name: 'odd' }, (binding) =>
      JSON.stringify(binding.status ?? {}).includes('APINotExported'),
    );
    await installCrd(f0.provider, fidelityCrd);
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'odd' });
    const installed = await f0.consumer.get(resources.crds, { name: 'fidelities.odd.example.org' });
    const spec = installed.spec as unknown as typeof fidelityCrd.spec;
    expect(spec.names).toMatchObject({ shortNames: ['fid'], categories: ['oddities'] });
    expect(spec.versions.map(({ name, storage }) => `${name} ${storage}`).sort()).toEqual(['v1 true', 'v1beta1 false']);
    await until('the schema is that of the document', async () =>
      JSON.stringify(await crd('fidelities.odd.example.org')).includes('x-kubernetes-int-or-string'),
    );
    const key = { namespace: 'default', name: 'all' };
    const made = await f0.consumer.make(fidelities, key, { spec: fidelitySpec });
    expect(made.spec).toMatchObject({ port: 'http', matrix: [[1, 2], [], [3]], quota: 9007199254740991 });
    const copy = await untilObject(f0.provider, fidelities, key);
    expect(copy.spec).toEqual(made.spec);
    const second = { ...key, name: 'number' };
    await f0.consumer.make(fidelities, second, { spec: { size: 'small', port: 8080 } });
    await untilObject(f0.provider, fidelities, second, ({ spec: got }) => JSON.stringify(got).includes('"port":8080'));
    await expect(f0.consumer.make(fidelities, { ...key, name: 'bad' }, { spec: { size: 'huge' } })).rejects.toThrow(
      /422/,
    );
  });

  test('a changed schema is followed by the Connection under Always, and said by the binding', async () => {
    const name = 'fidelities.odd.example.org';
    const provider = await f0.provider.get(resources.crds, { name });
    const text = JSON.stringify(provider).replaceAll('"How large."', '"How very large."');
    await f0.provider.replace(resources.crds, JSON.parse(text) as KubeObject);
    const after = await untilObject(f0.consumer, resources.crds, { name }, (one) =>
      JSON.stringify(one.spec).includes('How very large.'),
    );
    const hash = after.metadata.annotations?.['core.kbind.io/schema-hash'] ?? 'none';
    await untilObject(f0.consumer, resources.clusterBindings, { name: 'odd' }, (binding) =>
      JSON.stringify(binding.status).includes(hash),
    );
  });

  test('an aggregated API that is down is left out and named; the others go on', async () => {
    const away = { groupPriorityMinimum: 100, versionPriority: 10, insecureSkipTLSVerify: true };
    const service = { namespace: 'default', name: 'nobody' };
    await f0.provider.make(
      apiServices,
      { name: 'v1.away.example.net' },
      { spec: { ...away, group: 'away.example.net', version: 'v1', service } },
    );
    const told = await untilObject(f0.consumer, resources.connections, { name: 'demo-provider' }, (object) =>
      JSON.stringify(object.status).includes('away.example.net/v1'),
    );
    expect(isTrue(told, 'Ready')).toBe(true);
    expect(messageOf(told, 'Ready')).toContain('aggregated API');
    expect(exportsOf(told)).toEqual(['fidelities.odd.example.org', 'widgets.example.org']);
    const key = { namespace: 'default', name: 'meanwhile' };
    await f0.consumer.make(widgets, key, { spec: { size: 'small' } });
    await untilObject(f0.provider, widgets, key);
    await f0.provider.delete(apiServices, { name: 'v1.away.example.net' });
    await untilObject(
      f0.consumer,
      resources.connections,
      { name: 'demo-provider' },
      (object) => !JSON.stringify(object.status).includes('away.example.net'),
    );
  });

  test('None waits, and says which label and annotation are missing (L12)', async () => {
    await makeConnection(f0.consumer, { name: 'none', schema: { ...OPENAPI, pullPolicy: 'None' } });
    const later = odd('laters', 'Later');
    await installCrd(f0.provider, crdFor(later, { exported: false }));
    await makeBinding(f0.consumer, { name: 'none', connection: 'none', apis: ['laters.odd.example.org'] });
    const says = (part: string): Promise<KubeObject> =>
      untilObject(f0.consumer, resources.clusterBindings, { name: 'none' }, (binding) =>
        JSON.stringify(binding.status ?? {}).includes(part),
      );
    const waiting = await says('waiting for a CustomResourceDefinition');
    expect(conditionOf(waiting, 'Ready')).toMatchObject({ status: 'False', reason: 'Pending' });
    await f0.consumer.create(resources.crds, crdFor(later, { exported: false }));
    const unmanaged = await says('is not managed by Connection none');
    expect(messageOf(unmanaged, 'Ready')).toContain('label core.kbind.io/managed: "true"');
    expect(messageOf(unmanaged, 'Ready')).toContain('annotation core.kbind.io/connection: none');
    await f0.consumer.merge(
      resources.crds,
      { name: 'laters.odd.example.org' },
      {
        metadata: { labels: { 'core.kbind.io/managed': 'true' }, annotations: { 'core.kbind.io/connection': 'none' } },
      },
    );
    await untilReady(f0.consumer, resources.clusterBindings, { name: 'none' });
  });

  test('All installs every export; what cannot be installed is named and holds up nobody (C8)', async () => {
    // Of the consumer's CRDs one belongs to somebody else: another kind holds the name that this API needs.
    await f0.consumer.create(resources.crds, crdFor(odd('rivals', 'Clash'), { exported: false }));
    await installCrd(f0.provider, crdFor(odd('clashes', 'Clash'), { exported: false }));
    await makeConnection(f0.consumer, { name: 'everything', schema: { ...OPENAPI, pullPolicy: 'All' } });
    const told = await untilObject(f0.consumer, resources.connections, { name: 'everything' }, (object) =>
      messageOf(object, 'SchemaInSync').includes('clashes.odd.example.org'),
    );
    expect(isTrue(await untilReady(f0.consumer, resources.connections, { name: 'everything' }), 'Ready')).toBe(true);
    expect(conditionOf(told, 'SchemaInSync')?.status).toBe('False');
    expect(await crd('clashes.odd.example.org')).toBeDefined();
  });

  test('Auto: no labelled CRD means OpenAPI, said by an Event and in the condition (L18); a label turns it back', async () => {
    await makeConnection(f0.consumer, { name: 'auto', schema: { source: 'Auto' } });
    const fell = await untilReady(f0.consumer, resources.connections, { name: 'auto' });
    expect(statusOf(fell).activeSchemaSource).toBe('OpenAPI');
    expect(exportsOf(fell)).toContain('widgets.example.org');
    expect(messageOf(fell, 'Ready')).toContain('set spec.schema.source');
    await until('an Event tells of the source', () => hasEvent('SchemaSourceChanged', 'auto'));
    await f0.provider.merge(
      resources.crds,
      { name: 'laters.odd.example.org' },
      { metadata: { labels: { 'core.kbind.io/exported': 'true' } } },
    );
    const back = await untilObject(
      f0.consumer,
      resources.connections,
      { name: 'auto' },
      (object) => statusOf(object).activeSchemaSource === 'CRD',
    );
    expect(exportsOf(back)).toEqual(['laters.odd.example.org']);
  });

  test('Auto with a list of CRDs that is refused never falls back, and names both remedies (L19)', async () => {
    const user = await f0.provider.real.addUser({ name: 'no-crds' });
    const rules = [{ apiGroups: [''], resources: ['namespaces'], verbs: ['get'] }];
    await f0.provider.make(roles, { name: 'no-crds' }, { rules });
    await f0.provider.make(
      roleBindings,
      { name: 'no-crds' },
      {
        roleRef: { apiGroup: roles.group, kind: roles.kind, name: 'no-crds' },
        subjects: [{ apiGroup: roles.group, kind: 'User', name: 'no-crds' }],
      },
    );
    await makeKubeconfigSecret(f0.consumer, 'no-crds', user.kubeconfig);
    await makeConnection(f0.consumer, { name: 'refused', secret: 'no-crds', schema: { source: 'Auto' } });
    const refused = await untilObject(f0.consumer, resources.connections, { name: 'refused' }, (object) =>
      isTrue(object, 'PermissionDenied'),
    );
    expect(conditionOf(refused, 'Ready')).toMatchObject({ status: 'False', reason: 'Forbidden' });
    expect(messageOf(refused, 'PermissionDenied')).toContain('set spec.schema.source: OpenAPI');
    expect(statusOf(refused).activeSchemaSource).toBeUndefined();
    await f0.consumer.merge(resources.connections, { name: 'refused' }, { spec: { schema: { source: 'OpenAPI' } } });
    const healed = await untilReady(f0.consumer, resources.connections, { name: 'refused' });
    expect(exportsOf(healed)).toContain('widgets.example.org');
  });

  test('unbinding removes a synthesized CRD', async () => {
    await f0.consumer.delete(resources.clusterBindings, { name: 'odd' });
    await untilGone(f0.consumer, resources.clusterBindings, { name: 'odd' });
    expect(await crd('fidelities.odd.example.org')).toBeUndefined();
  });
});

/** Folder with crds/ and samples/ of real projects; CI hands it over. */
const folder = process.env['KBIND_E2E_DATA'];

interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string };
  spec?: unknown;
}
type CrdManifest = ReturnType<typeof crdFor> & {
  spec: {
    group: string;
    scope: string;
    names: { plural: string; kind: string };
    versions: { name: string; storage: boolean }[];
  };
};
const load = async <T>(...path: string[]): Promise<T> =>
  parse(await readFile(join(folder ?? '', ...path), 'utf8')) as T;

describe.runIf(folder !== undefined)('the APIs of public projects through OpenAPI', () => {
  let f0: F0;
  const files =
    folder === undefined ? [] : readdirSync(join(folder, 'crds')).map((file) => file.replace(/\.yaml$/, ''));
  // Groups under k8s.io are never offered by this source (spec §3): these are not bound but looked for.
  const offered = files.filter((name) => !name.endsWith('.k8s.io'));

  beforeAll(async () => {
    f0 = await startF0({ exported: [] });
    for (const namespace of ['sandbox', 'application-1', 'site-ns']) await ensureNamespace(f0.consumer, namespace);
    for (const name of files) await installCrd(f0.provider, await load<CrdManifest>('crds', `${name}.yaml`));
    await makeConnection(f0.consumer, { schema: OPENAPI });
    await untilReady(f0.consumer, resources.connections, { name: 'demo-provider' });
  });
  afterAll(() => f0.stop());

  test('all but the protected groups are exported', async () => {
    const connection = await f0.consumer.get(resources.connections, { name: 'demo-provider' });
    expect(exportsOf(connection)).toEqual(offered.toSorted());
  });

  test.each(offered)('%s is bound, and its samples are equal on both sides', async (name) => {
    const { spec } = await load<CrdManifest>('crds', `${name}.yaml`);
    const isOpen = !JSON.stringify(spec).includes('"properties"');
    await makeBinding(f0.consumer, { name, apis: [name] });
    await untilReady(f0.consumer, resources.clusterBindings, { name });
    await until('its schema is that of its document', async () => {
      const crd = await f0.consumer.get(resources.crds, { name });
      return isOpen || JSON.stringify(crd.spec).includes('"properties"');
    });
    const installed = await f0.consumer.get(resources.crds, { name });
    const version = usableVersion(installed)?.name ?? '';
    // A provider that stores another version than it prefers adds the defaults of the one that it stores.
    const isElsewhere = spec.versions.some(({ name: one, storage }) => storage && one !== version);
    for (const index of [1, 2, 3]) {
      const sample = await load<Manifest>('samples', `${name}.${index}.yaml`);
      const ref: ResourceRef = {
        group: spec.group,
        version,
        resource: spec.names.plural,
        kind: spec.names.kind,
        namespaced: spec.scope === 'Namespaced',
      };
      const key = { ...(ref.namespaced ? { namespace: 'default' } : {}), ...sample.metadata };
      const at = { name: key.name, ...('namespace' in key ? { namespace: key.namespace } : {}) };
      // Conversion is None: a sample of another version than the stored one may be refused as one of that.
      const apiVersion = `${spec.group}/${version}`;
      const sent = f0.consumer.create(ref, { ...sample, apiVersion, metadata: key }, at.namespace);
      const made = await sent.catch((error: unknown) => {
        if (sample.apiVersion === apiVersion || !String(error).includes('422')) throw error;
      });
      if (made === undefined) continue;
      await untilObject(
        f0.provider,
        ref,
        at,
        (copy) => sameSpec(copy, made) || (isElsewhere && contains(copy.spec, made.spec)),
      );
    }
  });
});
