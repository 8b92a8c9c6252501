import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { installCrd, newNamespace, onEveryServer, until, type TestServer } from '../../support/apiserver/servers.ts';
import type { Body, Reply } from '../../support/apiserver/api.ts';
import { CRDS_PATH, widgetCrd, type CrdBody, type CrdVersionBody } from '../../support/apiserver/widgets.ts';

/** Folder with crds/ and samples/ of real projects; CI hands it over. */
const DATA = process.env['KBIND_E2E_DATA'];
const readAll = (folder: string): Body[] => {
  if (DATA === undefined) throw new Error('KBIND_E2E_DATA is not set');
  return readdirSync(join(DATA, folder)).map((file) => parse(readFileSync(join(DATA, folder, file), 'utf8')) as Body);
};

const conditionOf = (crd: Body, type: string): { status: string; reason: string; message: string } | undefined =>
  ((crd.status['conditions'] ?? []) as { type: string; status: string; reason: string; message: string }[]).find(
    (each) => each.type === type,
  );

const versionOf = (crd: CrdBody): CrdVersionBody => crd.spec.versions[0] ?? { name: 'v1', served: true, storage: true };

function crd(plural: string, change: Partial<CrdBody['spec']> = {}): CrdBody {
  const kind = `${plural.charAt(0).toUpperCase()}${plural.slice(1, -1)}`;
  const base = widgetCrd({ plural, kind });
  return { ...base, spec: { ...base.spec, ...change } };
}

const causesOf = ({ body }: Reply): string[] => (body.details?.causes ?? []).map(({ field }) => field ?? '');

onEveryServer('CustomResourceDefinitions', (server, kind) => {
  const read = async (name: string): Promise<Body> => (await server().api.get(`${CRDS_PATH}/${name}`)).body;
  const established = (name: string): Promise<Body> =>
    until(async () => {
      const body = await read(name);
      return conditionOf(body, 'Established')?.status === 'True' && body;
    });
  const change = async (name: string, edit: (body: CrdBody) => void): Promise<Reply> => {
    const body = (await read(name)) as unknown as CrdBody;
    edit(body);
    return server().api.put(`${CRDS_PATH}/${name}`, body);
  };

  it('fills in names and conversion, and accepts', async () => {
    const { code, body } = await server().api.post(CRDS_PATH, crd('gadgets'));
    expect(code).toBe(201);
    expect(body.spec['names']).toEqual({
      plural: 'gadgets',
      singular: 'gadget',
      kind: 'Gadget',
      listKind: 'GadgetList',
    });
    expect(body.spec['conversion']).toEqual({ strategy: 'None' });
    expect(body.status['storedVersions']).toEqual(['v1']);
    const done = await established('gadgets.example.org');
    expect(conditionOf(done, 'NamesAccepted')).toMatchObject({
      status: 'True',
      reason: 'NoConflicts',
      message: 'no conflicts found',
    });
    expect(conditionOf(done, 'Established')).toMatchObject({
      status: 'True',
      reason: 'InitialNamesAccepted',
      message: 'the initial names have been accepted',
    });
    expect(done.status['acceptedNames']).toEqual({
      plural: 'gadgets',
      singular: 'gadget',
      kind: 'Gadget',
      listKind: 'GadgetList',
    });
    expect(done.metadata.generation).toBe(1);
  });

  it('drops a status that the client chose', async () => {
    const { body } = await server().api.post(CRDS_PATH, {
      ...crd('statuses'),
      status: { conditions: [{ type: 'Established', status: 'True' }], storedVersions: ['v7'] },
    });
    expect(body.status['storedVersions']).toEqual(['v1']);
  });

  it('refuses a name that is not plural.group', async () => {
    const { code, body } = await server().api.post(CRDS_PATH, {
      ...crd('names'),
      metadata: { name: 'other.example.org' },
    });
    expect([code, body.reason]).toEqual([422, 'Invalid']);
    expect(body.message).toContain('must be spec.names.plural+"."+spec.group');
  });

  it('needs exactly one storage version', async () => {
    const base = crd('storages');
    for (const storage of [
      [false, false],
      [true, true],
    ]) {
      const versions = storage.map((each, i) => ({ ...versionOf(base), name: `v${i + 1}`, storage: each }));
      const reply = await server().api.post(CRDS_PATH, crd('storages', { versions }));
      expect(reply.code).toBe(422);
      expect(reply.body.message).toContain('must have exactly one version marked as storage version');
    }
  });

  it('needs a known scope', async () => {
    const reply = await server().api.post(CRDS_PATH, crd('scopes', { scope: 'Galaxy' }));
    expect(reply.code).toBe(422);
    expect(reply.body.message).toContain(
      'spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"',
    );
  });

  it('needs a schema', async () => {
    const { schema: _schema, ...version } = versionOf(crd('bares'));
    const reply = await server().api.post(CRDS_PATH, crd('bares', { versions: [version] }));
    expect([reply.code, causesOf(reply)]).toEqual([422, ['spec.versions[0].schema.openAPIV3Schema']]);
  });

  it.each([
    ['a field without type', { properties: { a: {} } }, 'properties[a].type'],
    ['an array without items', { properties: { a: { type: 'array' } } }, 'properties[a].items'],
    ['an unknown type', { properties: { a: { type: 'text' } } }, 'properties[a].type'],
    [
      'a set list without list',
      { properties: { a: { type: 'string', 'x-kubernetes-list-type': 'set' } } },
      'properties[a].type',
    ],
    [
      'a map list without keys',
      {
        properties: {
          a: {
            type: 'array',
            'x-kubernetes-list-type': 'map',
            items: { type: 'object', properties: { k: { type: 'string' } } },
          },
        },
      },
      'properties[a].x-kubernetes-list-map-keys',
    ],
    [
      'uniqueItems',
      { properties: { a: { type: 'array', uniqueItems: true, items: { type: 'string' } } } },
      'properties[a].uniqueItems',
    ],
    [
      'a type below anyOf',
      { properties: { a: { type: 'object', anyOf: [{ type: 'object' }] } } },
      'properties[a].anyOf[0].type',
    ],
  ])('refuses %s', async (_title, schema, field) => {
    const version = { ...versionOf(crd('unstructurals')), schema: { openAPIV3Schema: { type: 'object', ...schema } } };
    const reply = await server().api.post(CRDS_PATH, crd('unstructurals', { versions: [version] }));
    expect(reply.code).toBe(422);
    expect(causesOf(reply).join()).toContain(field);
  });

  it('refuses a protected group without approval', async () => {
    const base = widgetCrd({ plural: 'approveds', kind: 'Approved', group: 'kbind.k8s.io' });
    const { code, body } = await server().api.post(CRDS_PATH, base);
    expect([code, body.reason]).toEqual([422, 'Invalid']);
    expect(body.message).toContain('protected groups must have approval annotation "api-approved.kubernetes.io"');
  });

  it('accepts a protected group with approval', async () => {
    const base = widgetCrd({ plural: 'approveds', kind: 'Approved', group: 'kbind.k8s.io' });
    const annotations = { 'api-approved.kubernetes.io': 'https://github.com/kubernetes/kubernetes/pull/1' };
    const { code } = await server().api.post(CRDS_PATH, { ...base, metadata: { ...base.metadata, annotations } });
    expect(code).toBe(201);
    const body = await established('approveds.kbind.k8s.io');
    const conformant = async () =>
      conditionOf(await read('approveds.kbind.k8s.io'), 'KubernetesAPIApprovalPolicyConformant');
    await until(async () => (await conformant())?.status === 'True');
    expect(conditionOf(body, 'Established')?.status).toBe('True');
  });

  it('keeps group and scope', async () => {
    await installCrd(server(), crd('fixeds'));
    const scope = await change('fixeds.example.org', ({ spec }) => void (spec.scope = 'Cluster'));
    expect(scope.code).toBe(422);
    expect(scope.body.message).toContain('spec.scope: Invalid value: "Cluster": field is immutable');
    const group = await change('fixeds.example.org', ({ spec }) => void (spec.group = 'other.org'));
    expect(group.code).toBe(422);
  });

  it('counts the generation of spec changes, and needs a resourceVersion', async () => {
    await installCrd(server(), crd('changings'));
    const changed = await change('changings.example.org', ({ spec }) => void (spec.names.categories = ['all']));
    expect([changed.code, changed.body.metadata.generation]).toEqual([200, 2]);
    const blind = await server().api.put(`${CRDS_PATH}/changings.example.org`, crd('changings'));
    expect(blind.code).toBe(422);
    const old = await server().api.put(`${CRDS_PATH}/changings.example.org`, {
      ...crd('changings'),
      metadata: { name: 'changings.example.org', resourceVersion: '1' },
    });
    expect(old.code).toBe(409);
  });

  it('changes nothing in a dry-run update of an equal spec', async () => {
    const body = await installCrd(server(), crd('equals'));
    const sent = {
      ...crd('equals'),
      metadata: { name: 'equals.example.org', resourceVersion: body.metadata.resourceVersion },
    };
    const dry = await server().api.put(`${CRDS_PATH}/equals.example.org`, sent, { query: { dryRun: 'All' } });
    expect(dry.body.spec).toEqual(body.spec);
    expect(dry.body.metadata.generation).toBe(1);
  });

  it('keeps stored versions: one that holds objects cannot disappear', async () => {
    await installCrd(server(), crd('storeds'));
    const both = await change('storeds.example.org', ({ spec }) => {
      spec.versions = [
        { ...versionOf({ ...crd('storeds'), spec }), storage: false },
        { ...versionOf(crd('storeds')), name: 'v2' },
      ];
    });
    expect(both.body.status['storedVersions']).toEqual(['v1', 'v2']);
    const less = await change('storeds.example.org', ({ spec }) => void (spec.versions = spec.versions.slice(1)));
    expect(less.code).toBe(422);
    expect(less.body.message).toContain('status.storedVersions[0]: Invalid value: "v1"');
  });

  it('serves a change of the schema', async () => {
    const namespace = await newNamespace(server());
    await installCrd(server(), crd('growings'));
    const path = `/apis/example.org/v1/namespaces/${namespace}/growings`;
    const body = { apiVersion: 'example.org/v1', kind: 'Growing', metadata: { name: 'a' }, spec: { later: 'x' } };
    expect((await server().api.post(path, body)).body.spec['later']).toBeUndefined();
    await change('growings.example.org', ({ spec }) => {
      spec.versions = [
        {
          ...versionOf(crd('growings')),
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: { spec: { type: 'object', properties: { later: { type: 'string' } } } },
            },
          },
        },
      ];
    });
    await until(
      async () =>
        (await server().api.post(path, { ...body, metadata: { generateName: 'b-' } })).body.spec['later'] === 'x',
    );
  });

  it('shows an object at every served version under conversion None', async () => {
    const namespace = await newNamespace(server());
    const versions = [versionOf(crd('manies')), { ...versionOf(crd('manies')), name: 'v1beta1', storage: false }];
    await installCrd(server(), { ...crd('manies', { versions, names: { plural: 'manies', kind: 'Many' } }) });
    const path = (version: string): string => `/apis/example.org/${version}/namespaces/${namespace}/manies`;
    const old = { apiVersion: 'example.org/v1beta1', kind: 'Many', metadata: { name: 'a' }, spec: { size: 'small' } };
    const made = await server().api.post(path('v1beta1'), old);
    expect([made.code, made.body.apiVersion]).toEqual([201, 'example.org/v1beta1']);
    const stored = await server().api.get(`${path('v1')}/a`);
    expect(stored.body).toMatchObject({ apiVersion: 'example.org/v1', spec: { size: 'small' } });
    expect((await server().api.get(path('v1beta1'))).body.items[0]?.apiVersion).toBe('example.org/v1beta1');
  });

  it('does not serve a version that is not served', async () => {
    const versions = [
      versionOf(crd('hiddens')),
      { ...versionOf(crd('hiddens')), name: 'v2', storage: false, served: false },
    ];
    await installCrd(server(), crd('hiddens', { versions }));
    expect((await server().api.get('/apis/example.org/v2/hiddens')).code).toBe(404);
  });

  it('warns of a deprecated version', async () => {
    const versions = [
      versionOf(crd('olds')),
      {
        ...versionOf(crd('olds')),
        name: 'v1alpha1',
        storage: false,
        deprecated: true,
        deprecationWarning: 'use v1 instead',
      },
    ];
    await installCrd(server(), crd('olds', { versions }));
    const reply = await server().api.get('/apis/example.org/v1alpha1/olds');
    expect(reply.headers['warning']).toBe('299 - "use v1 instead"');
    expect((await server().api.get('/apis/example.org/v1/olds')).headers['warning']).toBeUndefined();
  });

  it('answers 500 where only a conversion webhook could help', async () => {
    const namespace = await newNamespace(server());
    const versions = [versionOf(crd('hooks')), { ...versionOf(crd('hooks')), name: 'v2', storage: false }];
    const service = { namespace: 'default', name: 'nothing', path: '/convert' };
    const conversion = {
      strategy: 'Webhook',
      webhook: { clientConfig: { service }, conversionReviewVersions: ['v1'] },
    };
    await installCrd(server(), crd('hooks', { versions, conversion }));
    const path = (version: string): string => `/apis/example.org/${version}/namespaces/${namespace}/hooks`;
    const body = { apiVersion: 'example.org/v1', kind: 'Hook', metadata: { name: 'a' }, spec: {} };
    expect((await server().api.post(path('v1'), body)).code).toBe(201);
    expect((await server().api.get(`${path('v1')}/a`)).code).toBe(200);
    for (const reply of [await server().api.get(`${path('v2')}/a`), await server().api.get(path('v2'))]) {
      expect(reply.code).toBe(500);
      expect(reply.body.message).toContain('conversion webhook for example.org/v1, Kind=Hook failed');
    }
  });

  it('holds back a CRD whose names are taken', async () => {
    await installCrd(server(), crd('claims'));
    const names = { plural: 'others', singular: 'other', kind: 'Claim', listKind: 'OtherList', shortNames: ['claims'] };
    await server().api.post(CRDS_PATH, { ...crd('others', { names }) });
    const body = await until(async () => {
      const found = await read('others.example.org');
      return conditionOf(found, 'NamesAccepted')?.status === 'False' && found;
    });
    expect(conditionOf(body, 'NamesAccepted')?.message).toContain('is already in use');
    expect(conditionOf(body, 'Established')).toMatchObject({ status: 'False', reason: 'NotAccepted' });
    expect((await server().api.get('/apis/example.org/v1/others')).code).toBe(404);
    await server().api.delete(`${CRDS_PATH}/claims.example.org`);
    await established('others.example.org');
  });

  it('is removed with its objects', async () => {
    const namespace = await newNamespace(server());
    await installCrd(server(), crd('leavings'));
    const path = `/apis/example.org/v1/namespaces/${namespace}/leavings`;
    await server().api.post(path, { apiVersion: 'example.org/v1', kind: 'Leaving', metadata: { name: 'a' }, spec: {} });
    const { code, body } = await server().api.delete(`${CRDS_PATH}/leavings.example.org`);
    expect(code).toBe(200);
    expect(body.metadata.finalizers).toEqual(['customresourcecleanup.apiextensions.k8s.io']);
    expect(conditionOf(body, 'Terminating')).toMatchObject({ status: 'True', reason: 'InstanceDeletionPending' });
    await until(async () => (await server().api.get(`${CRDS_PATH}/leavings.example.org`)).code === 404);
    await until(async () => (await server().api.get(path)).code === 404);
    await installCrd(server(), crd('leavings'));
    expect((await server().api.get(path)).body.items).toEqual([]);
  });

  it('waits for instances that finalizers hold, and takes no new ones meanwhile', async () => {
    const namespace = await newNamespace(server());
    await installCrd(server(), crd('helds'));
    const path = `/apis/example.org/v1/namespaces/${namespace}/helds`;
    const body = {
      apiVersion: 'example.org/v1',
      kind: 'Held',
      metadata: { name: 'a', finalizers: ['example.org/hold'] },
      spec: {},
    };
    await server().api.post(path, body);
    await server().api.delete(`${CRDS_PATH}/helds.example.org`);
    await until(async () => (await server().api.get(`${path}/a`)).body.metadata.deletionTimestamp !== undefined);
    const refused = await server().api.post(path, { ...body, metadata: { name: 'b' } });
    // 1.20 calls it a method that is not allowed.
    expect([refused.code, refused.body.reason]).toEqual(
      kind.minor < 21 ? [405, 'MethodNotAllowed'] : [403, 'Forbidden'],
    );
    expect(refused.body.message).toContain('create not allowed while custom resource definition is terminating');
    expect((await read('helds.example.org')).metadata.deletionTimestamp).toBeTruthy();
    await server().api.patch(`${path}/a`, 'merge', { metadata: { finalizers: null } });
    await until(async () => (await server().api.get(`${CRDS_PATH}/helds.example.org`)).code === 404);
  });

  it('refuses to be deleted under an old resourceVersion', async () => {
    const body = await installCrd(server(), crd('guardeds'));
    await change('guardeds.example.org', (each) => void (each.metadata.annotations = { a: 'b' }));
    const preconditions = { uid: body.metadata.uid, resourceVersion: body.metadata.resourceVersion };
    const { code, body: refusal } = await server().api.delete(`${CRDS_PATH}/guardeds.example.org`, { preconditions });
    expect([code, refusal.reason]).toEqual([409, 'Conflict']);
    expect((await read('guardeds.example.org')).metadata.deletionTimestamp).toBeUndefined();
  });

  it('serves cluster-scoped resources', async () => {
    await installCrd(server(), crd('globals', { scope: 'Cluster' }));
    const path = '/apis/example.org/v1/globals';
    const made = await server().api.post(path, {
      apiVersion: 'example.org/v1',
      kind: 'Global',
      metadata: { name: 'a.b' },
      spec: {},
    });
    expect([made.code, made.body.metadata.namespace]).toEqual([201, undefined]);
    expect((await server().api.get('/apis/example.org/v1/namespaces/default/globals/a.b')).code).toBe(404);
    const misplaced = await server().api.post(path, {
      apiVersion: 'example.org/v1',
      kind: 'Global',
      metadata: { name: 'b', namespace: 'default' },
      spec: {},
    });
    // A namespace is dropped where there is none; 1.20 refuses it.
    expect(misplaced.code).toBe(kind.minor < 21 ? misplaced.code : 201);
    expect(misplaced.body.metadata.namespace).toBeUndefined();
  });

  it.runIf(DATA !== undefined)('accepts real CRDs and their samples', async () => {
    await acceptReal(server());
  });
});

async function acceptReal(server: TestServer): Promise<void> {
  for (const namespace of ['sandbox', 'application-1', 'site-ns'])
    await server.api.post('/api/v1/namespaces', { metadata: { name: namespace } });
  const plurals = new Map<string, string>();
  for (const each of readAll('crds')) {
    const installed = await installCrd(server, each);
    const { plural, kind } = installed.spec['names'] as { plural: string; kind: string };
    plurals.set(
      `${String(installed.spec['group'])}/${kind}`,
      installed.spec['scope'] === 'Cluster' ? plural : `namespaces/NS/${plural}`,
    );
  }
  for (const sample of readAll('samples')) {
    const group = sample.apiVersion?.split('/')[0] ?? '';
    const place = plurals.get(`${group}/${sample.kind}`)?.replace('NS', sample.metadata.namespace ?? 'default');
    const path = `/apis/${sample.apiVersion}/${place}`;
    const made = await server.api.post(path, sample);
    expect([made.code, made.code === 201 ? '' : made.text]).toEqual([201, '']);
    const again = await server.api.apply(`${path}/${sample.metadata.name}`, sample, 'contract', { force: 'true' });
    expect([again.code, again.code === 200 ? '' : again.text]).toEqual([200, '']);
  }
}
