import { beforeAll, expect, it } from 'vitest';
import { newNamespace, onEveryServer, pathOf, unique } from '../../support/apiserver/servers.ts';

const secrets = pathOf('', 'v1', 'secrets');
const configMaps = pathOf('', 'v1', 'configmaps');
const events = pathOf('', 'v1', 'events');
const leases = pathOf('coordination.k8s.io', 'v1', 'leases');

onEveryServer('built-in kinds', (server, kind) => {
  let ns = '';
  beforeAll(async () => {
    ns = await newNamespace(server());
  });

  const secret = (more: object = {}) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: unique('secret') },
    ...more,
  });
  const lease = (spec: object) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: unique('lease') },
    spec,
  });

  it('has the namespaces that every cluster has', async () => {
    const { body } = await server().api.get('/api/v1/namespaces/kube-system');
    expect(body).toMatchObject({
      // 1.20 does not label namespaces.
      metadata: kind.minor < 22 ? {} : { labels: { 'kubernetes.io/metadata.name': 'kube-system' } },
      status: { phase: 'Active' },
      spec: { finalizers: ['kubernetes'] },
    });
    expect(body.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('makes a namespace active, with a finalizer and its name as a label', async () => {
    const name = unique('space');
    const { code, body } = await server().api.post('/api/v1/namespaces', { metadata: { name } });
    expect(code).toBe(201);
    expect(body).toMatchObject({
      kind: 'Namespace',
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    });
  });

  it('marks a deleted namespace as Terminating, and takes nothing new there', async () => {
    const name = await newNamespace(server());
    await server().api.post(configMaps(name), { metadata: { name: 'hold', finalizers: ['example.org/hold'] } });
    const { code, body } = await server().api.delete(`/api/v1/namespaces/${name}`);
    expect(code).toBe(200);
    expect(body.status['phase']).toBe('Terminating');
    expect(body.metadata.deletionTimestamp).toBeTruthy();
    const refused = await server().api.post(secrets(name), { metadata: { name: 'late' } });
    expect([refused.code, refused.body.reason]).toEqual([403, 'Forbidden']);
    expect(refused.body.message).toBe(
      `secrets "late" is forbidden: unable to create new content in namespace ${name} because it is being terminated`,
    );
    expect(refused.body.details?.causes?.[0]).toMatchObject({
      reason: 'NamespaceTerminating',
      field: 'metadata.namespace',
      message: `namespace ${name} is being terminated`,
    });
    await server().api.patch(configMaps(name, 'hold'), 'merge', { metadata: { finalizers: null } });
  });

  it('refuses a namespace name with a dot', async () => {
    expect((await server().api.post('/api/v1/namespaces', { metadata: { name: 'a.b' } })).code).toBe(422);
  });

  it('folds stringData into data, and makes a Secret Opaque', async () => {
    const { body } = await server().api.post(
      secrets(ns),
      secret({ data: { a: 'YQ==' }, stringData: { b: 'b', a: 'ä' } }),
    );
    expect(body['data']).toEqual({ a: Buffer.from('ä').toString('base64'), b: 'Yg==' });
    expect(body['stringData']).toBeUndefined();
    expect(body['type']).toBe('Opaque');
  });

  it('keeps the type of a Secret', async () => {
    const { body } = await server().api.post(secrets(ns), secret({ type: 'example.org/t' }));
    const reply = await server().api.put(secrets(ns, body.metadata.name), { ...body, type: 'Opaque' });
    expect([reply.code, reply.body.details?.causes?.[0]?.field]).toEqual([422, 'type']);
  });

  it('refuses Secret data that is not base64 with 400', async () => {
    const { code, body } = await server().api.post(secrets(ns), secret({ data: { a: '%%%' } }));
    expect([code, body.reason]).toEqual([400, 'BadRequest']);
    expect(body.message).toContain('illegal base64 data at input byte 0');
  });

  it('refuses Secret data that is no text with 400', async () => {
    const { code, body } = await server().api.post(secrets(ns), secret({ data: { a: 1 } }));
    expect([code, body.reason]).toEqual([400, 'BadRequest']);
    const current = 'json: cannot unmarshal number into Go struct field Secret.data of type []uint8';
    expect(body.message).toContain(kind.minor < 22 ? 'v1.Secret.Data: base64Codec: invalid input' : current);
  });

  it('refuses a data key with a slash', async () => {
    const { code, body } = await server().api.post(secrets(ns), secret({ data: { 'a/b': 'YQ==' } }));
    expect([code, body.reason]).toEqual([422, 'Invalid']);
    expect(body.details?.causes?.[0]?.field).toBe('data[a/b]');
  });

  it('refuses a Secret of more than 1 MiB', async () => {
    const data = { a: Buffer.alloc(1024 * 1024 + 1).toString('base64') };
    const { code, body } = await server().api.post(secrets(ns), secret({ data }));
    expect([code, body.reason]).toEqual([422, 'Invalid']);
    expect(body.message).toMatch(/Too long: (may not be more than|must have at most) 1048576 bytes/);
  });

  it('keeps an immutable Secret as it is', async () => {
    const { body } = await server().api.post(secrets(ns), secret({ data: { a: 'YQ==' }, immutable: true }));
    const path = secrets(ns, body.metadata.name);
    const changed = await server().api.patch(path, 'merge', { data: { a: 'Yg==' } });
    expect([changed.code, changed.body.reason]).toEqual([422, 'Invalid']);
    expect(changed.body.message).toContain('field is immutable when `immutable` is set');
    expect((await server().api.patch(path, 'merge', { immutable: false })).code).toBe(422);
    expect((await server().api.patch(path, 'merge', { metadata: { labels: { a: 'b' } } })).code).toBe(200);
  });

  it('keeps text and bytes of a ConfigMap', async () => {
    const { body } = await server().api.post(configMaps(ns), {
      metadata: { name: 'cm' },
      data: { a: 'ä\n' },
      binaryData: { b: 'AP8=' },
    });
    expect(body).toMatchObject({ data: { a: 'ä\n' }, binaryData: { b: 'AP8=' } });
  });

  it('has no generation on Secrets and ConfigMaps', async () => {
    const { body } = await server().api.post(secrets(ns), secret());
    expect(body.metadata.generation).toBeUndefined();
  });

  it('replaces an immutable copy by delete and create', async () => {
    const { body } = await server().api.post(configMaps(ns), {
      metadata: { name: 'fixed' },
      data: { a: '1' },
      immutable: true,
    });
    await server().api.delete(configMaps(ns, 'fixed'), {
      preconditions: { uid: body.metadata.uid, resourceVersion: body.metadata.resourceVersion },
    });
    expect((await server().api.post(configMaps(ns), { metadata: { name: 'fixed' }, data: { a: '2' } })).code).toBe(201);
  });

  it('takes Lease times with six digits and refuses others', async () => {
    const good = await server().api.post(
      leases(ns),
      lease({ holderIdentity: 'me', leaseDurationSeconds: 60, renewTime: '2026-01-02T03:04:05.123456Z' }),
    );
    expect([good.code, good.body.spec['renewTime']]).toEqual([201, '2026-01-02T03:04:05.123456Z']);
    for (const renewTime of ['2026-01-02T03:04:05Z', '2026-01-02T03:04:05.123Z']) {
      const { code, body } = await server().api.post(leases(ns), lease({ renewTime }));
      expect([code, body.reason]).toEqual([400, 'BadRequest']);
      expect(body.message).toContain(`parsing time "${renewTime}" as "2006-01-02T15:04:05.000000Z07:00"`);
    }
  });

  it('refuses a Lease of no duration', async () => {
    const { code, body } = await server().api.post(leases(ns), lease({ leaseDurationSeconds: 0 }));
    expect([code, body.details?.causes?.[0]?.field]).toEqual([422, 'spec.leaseDurationSeconds']);
  });

  it('replaces a Lease under its resourceVersion, and creates one that is not there', async () => {
    const { body } = await server().api.post(leases(ns), lease({ holderIdentity: 'a' }));
    const path = leases(ns, body.metadata.name);
    const taken = await server().api.put(path, { ...body, spec: { holderIdentity: 'b' } });
    expect([taken.code, taken.body.spec['holderIdentity']]).toEqual([200, 'b']);
    expect((await server().api.put(path, { ...body, spec: { holderIdentity: 'c' } })).code).toBe(409);
    const fresh = lease({ holderIdentity: 'x' });
    expect((await server().api.put(leases(ns, fresh.metadata.name), fresh)).code).toBe(201);
  });

  const event = (more: object = {}) => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { generateName: 'e-' },
    involvedObject: { apiVersion: 'example.org/v1', kind: 'Widget', name: 'w', namespace: ns, uid: 'u1' },
    reason: 'Tested',
    message: 'a message',
    type: 'Warning',
    source: { component: 'contract' },
    firstTimestamp: '2026-01-02T03:04:05Z',
    lastTimestamp: '2026-01-02T03:04:05Z',
    count: 1,
    ...more,
  });

  it('keeps Events and counts them up', async () => {
    const { code, body } = await server().api.post(events(ns), event());
    expect(code).toBe(201);
    expect(body).toMatchObject({
      count: 1,
      eventTime: null,
      reportingComponent: expect.any(String) as unknown,
      source: { component: 'contract' },
    });
    const next = await server().api.put(events(ns, body.metadata.name), { ...body, count: 2 });
    expect([next.code, next.body['count']]).toEqual([200, 2]);
    const patched = await server().api.patch(events(ns, body.metadata.name), 'strategic', {
      count: 3,
      lastTimestamp: '2026-01-02T03:05:05Z',
    });
    expect(patched.body['count']).toBe(3);
  });

  it('selects Events by the object that they are about', async () => {
    await server().api.post(
      events(ns),
      event({ involvedObject: { kind: 'Widget', name: 'other', namespace: ns, uid: 'u2' } }),
    );
    const select = async (fieldSelector: string) =>
      (await server().api.get(events(ns), { query: { fieldSelector } })).body.items.length;
    expect(await select('involvedObject.name=other')).toBe(1);
    expect(await select('involvedObject.uid=u2,involvedObject.kind=Widget')).toBe(1);
    expect(await select('involvedObject.name=other,type=Normal')).toBe(0);
    expect(await select('reason=Tested,involvedObject.name!=other')).toBeGreaterThanOrEqual(1);
  });

  it('refuses an Event about an object of another namespace', async () => {
    const { code } = await server().api.post(
      events(ns),
      event({ involvedObject: { kind: 'Widget', name: 'w', namespace: 'default' } }),
    );
    expect(code).toBe(422);
  });

  it('selects Secrets by type, Namespaces by phase', async () => {
    await server().api.post(secrets(ns), secret({ type: 'example.org/selected' }));
    const { body } = await server().api.get(secrets(ns), { query: { fieldSelector: 'type=example.org/selected' } });
    expect(body.items).toHaveLength(1);
    const spaces = await server().api.get('/api/v1/namespaces', {
      query: { fieldSelector: 'status.phase=Active,metadata.name=default' },
    });
    expect(spaces.body.items).toHaveLength(1);
  });

  it('reads lists of built-in kinds with their kind and version', async () => {
    const { body } = await server().api.get(secrets(ns));
    expect([body.kind, body.apiVersion]).toEqual(['SecretList', 'v1']);
  });

  it('answers a question about access', async () => {
    const spec = { resourceAttributes: { verb: 'get', resource: 'secrets', namespace: ns } };
    const { code, body } = await server().api.post('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec,
    });
    expect([code, body.status['allowed']]).toEqual([201, true]);
  });
});
