import { expect, test, vi } from 'vitest';
import { stopAtFirstWrite, WouldWrite } from '../../../lib/kube/dry-run.ts';
import type { KubeClient, WriteOptions } from '../../../lib/kube/types.ts';
import { resources, type KubeObject } from '../../../lib/model/api.ts';

const { leases } = resources;
const read = { uid: 'u', resourceVersion: '1' };
const sent = { apiVersion: 'v1', kind: 'Lease', metadata: { namespace: 'ns', name: 'a' } };
const object: KubeObject = { apiVersion: 'v1', kind: 'Lease', metadata: { namespace: 'ns', name: 'a', ...read } };

function setUp() {
  const inner = {
    get: vi.fn(() => Promise.resolve(object)),
    create: vi.fn(() => Promise.resolve(object)),
    apply: vi.fn(() => Promise.resolve(object)),
    update: vi.fn(() => Promise.resolve(object)),
    patch: vi.fn(() => Promise.resolve(object)),
    delete: vi.fn(() => Promise.resolve()),
  };
  const client = stopAtFirstWrite(inner as unknown as KubeClient);
  const key = { namespace: 'ns', name: 'a' };
  const writes: Record<WouldWrite['verb'], (options?: WriteOptions) => Promise<unknown>> = {
    create: (options) => client.create(leases, sent, options),
    apply: (options) => client.apply(leases, sent, read, options),
    update: (options) => client.update(leases, object, options),
    patch: (options) => client.patch(leases, key, { read, operations: [] }, options),
    delete: (options) => client.delete(leases, key, read, options),
  };
  return { inner, client, writes };
}

const verbs = ['create', 'apply', 'update', 'patch', 'delete'] as const;

test.each(verbs)('%s stops and says what it would write', async (verb) => {
  const { inner, writes } = setUp();
  const stopped = await writes[verb]().catch((error: unknown) => error);
  expect(stopped).toBeInstanceOf(WouldWrite);
  expect(stopped).toMatchObject({
    verb,
    api: 'leases.coordination.k8s.io',
    key: { namespace: 'ns', name: 'a' },
    message: `would ${verb} leases.coordination.k8s.io ns/a`,
  });
  expect(inner[verb]).not.toHaveBeenCalled();
});

test.each(verbs)('%s with dryRun is a request and goes through', async (verb) => {
  const { inner, writes } = setUp();
  await writes[verb]({ dryRun: true });
  expect(inner[verb]).toHaveBeenCalledOnce();
});

test('reads go through', async () => {
  const { client } = setUp();
  await expect(client.get(leases, { namespace: 'ns', name: 'a' })).resolves.toBe(object);
});
