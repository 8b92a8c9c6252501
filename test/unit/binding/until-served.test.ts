import { expect, test } from 'vitest';
import { untilServed } from '../../../lib/reconcile/binding/until-served.ts';
import { inService, type InstallRequest, type SchemaResult } from '../../../lib/reconcile/schema-result.ts';
import type { World } from '../../../lib/reconcile/world.ts';
import type { KubeObject } from '../../../lib/model/api.ts';

const request = { api: 'widgets.example.org' } as InstallRequest;

function crd(status: 'True' | 'False', metadata: Partial<KubeObject['metadata']> = {}): KubeObject {
  const conditions = [
    { type: 'NamesAccepted', status: 'True' },
    { type: 'Established', status },
  ];
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: request.api, uid: 'u', resourceVersion: '1', ...metadata },
    status: { conditions },
  };
}

/** A consumer whose CRD is found like that, one look after the other; the last one stays. */
function waitFor(found: readonly (KubeObject | undefined)[], signal = new AbortController().signal) {
  let reads = 0;
  let looks = 0;
  const reading = {
    crd: (_name: string, options?: { readonly fresh?: boolean }) => {
      expect(options?.fresh).toBe(true);
      const value = found[Math.min(reads++, found.length - 1)];
      return Promise.resolve({ value, sentAt: { wall: 0, mono: 0 } });
    },
  };
  const world = { reads: reading, signal } as unknown as World;
  const first = { ...inService(request, crd('False')), droppedVersions: ['v1alpha1'] };
  const look = (result: SchemaResult): Promise<SchemaResult> => {
    looks += 1;
    return Promise.resolve(result);
  };
  const done = untilServed(world, request, { first, look });
  return { done, reads: () => reads, looks: () => looks };
}

test('a CRD that is established a moment later is installed at once, with what was said of it', async () => {
  const wait = waitFor([crd('False'), crd('True')]);
  expect(await wait.done).toMatchObject({ state: 'installed', droppedVersions: ['v1alpha1'] });
  expect([wait.reads(), wait.looks()]).toEqual([2, 3]);
});

test('one that takes long is left to the ordinary wait', async () => {
  const wait = waitFor([crd('False')]);
  expect(await wait.done).toMatchObject({ state: 'establishing' });
  expect(wait.reads()).toBe(5);
});

test.each([
  ['is gone', undefined],
  ['is on its way out', crd('True', { deletionTimestamp: '2026-01-01T00:00:00Z' })],
  ['is another one by now', crd('True', { uid: 'another' })],
])('nothing is concluded from a CRD that %s', async (_name, found) => {
  const wait = waitFor([found]);
  expect(await wait.done).toMatchObject({ state: 'establishing' });
  expect(wait.reads()).toBe(1);
});

test('nobody waits when the time is up', async () => {
  const wait = waitFor([crd('True')], AbortSignal.abort());
  expect(await wait.done).toMatchObject({ state: 'establishing' });
  expect(wait.reads()).toBe(0);
});
