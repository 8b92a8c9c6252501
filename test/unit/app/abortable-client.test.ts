import { describe, expect, it } from 'vitest';
import type { KubeClient } from '../../../lib/kube/types.ts';
import { abortableClient } from '../../../lib/app/abortable-client.ts';

/** A client that keeps the last argument of each call: the options. */
function recording(): { client: KubeClient; signals: Map<string, AbortSignal | undefined> } {
  const signals = new Map<string, AbortSignal | undefined>();
  const client = new Proxy(
    {},
    {
      get:
        (_target, method) =>
        (...parameters: unknown[]) => {
          const options = parameters.at(-1) as { signal?: AbortSignal } | undefined;
          signals.set(String(method), options?.signal);
          return Promise.resolve({});
        },
    },
  ) as KubeClient;
  return { client, signals };
}

const ref = { group: 'g', version: 'v1', resource: 'things', kind: 'Thing', namespaced: true };
const key = { namespace: 'n', name: 'a' };
const version = { uid: 'u', resourceVersion: '1' };
const sent = { apiVersion: 'g/v1', kind: 'Thing', metadata: {} };
const object = { ...sent, metadata: { name: 'a', ...version } };

const calls: [string, (client: KubeClient) => unknown][] = [
  ['get', (client) => client.get(ref, key)],
  ['find', (client) => client.find(ref, key)],
  ['list', (client) => client.list(ref)],
  ['listMetadata', (client) => client.listMetadata(ref)],
  ['listAll', (client) => client.listAll(ref)],
  ['listAllMetadata', (client) => client.listAllMetadata(ref)],
  ['watch', (client) => client.watch(ref, { resourceVersion: '1', metadataOnly: true })],
  ['getPath', (client) => client.getPath('/version')],
  ['create', (client) => client.create(ref, sent)],
  ['apply', (client) => client.apply(ref, sent, version)],
  ['update', (client) => client.update(ref, object)],
  ['patch', (client) => client.patch(ref, key, { read: version, operations: [] })],
  ['delete', (client) => client.delete(ref, key, version)],
];

describe('every request ends with the invocation', () => {
  it.each(calls)('%s', (method, call) => {
    const { client, signals } = recording();
    const time = new AbortController();
    call(abortableClient(client, time.signal));
    expect(signals.get(method)?.aborted).toBe(false);
    time.abort();
    expect(signals.get(method)?.aborted).toBe(true);
  });

  it('and still with the caller’s own signal', async () => {
    const { client, signals } = recording();
    const own = new AbortController();
    await abortableClient(client, new AbortController().signal).get(ref, key, { signal: own.signal });
    own.abort();
    expect(signals.get('get')?.aborted).toBe(true);
  });
});
