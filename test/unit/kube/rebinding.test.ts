import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Authority } from '../../../lib/embedded/pki/authority.ts';
import { createKubeClient, type OpenKubeClient } from '../../../lib/kube/client.ts';
import { resources } from '../../../lib/model/api.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { json, ScriptedServer } from '../../support/kube/scripted-server.ts';

const key = { namespace: 'ns', name: 'a' };
const object = { metadata: { ...key, uid: 'u', resourceVersion: '1' } };
const NAME = 'rebinding.test';

type Answer = readonly { readonly address: string; readonly family: number }[];

/** What the resolver answers, one after the other; the last one for good. */
function resolveTo(...answers: readonly Answer[]): void {
  let asked = 0;
  const lookup = (_name: string, _options: unknown, callback: (error: null, addresses: Answer) => void): void => {
    const answer = answers[Math.min(asked, answers.length - 1)] ?? [];
    asked += 1;
    callback(null, answer);
  };
  Object.assign(dns, { lookup });
  syncBuiltinESMExports();
}

const v4 = (address: string): Answer => [{ address, family: 4 }];

describe('a name that changes its address', () => {
  const { lookup } = dns;
  let server: ScriptedServer;
  let ca: string;
  const clients: OpenKubeClient[] = [];

  beforeAll(async () => {
    const authority = await Authority.create('rebinding');
    const { certificate: cert, key: serverKey } = await authority.server();
    ca = authority.certificate;
    server = await ScriptedServer.start(json(200, object), { cert, key: serverKey });
  });
  afterEach(async () => {
    Object.assign(dns, { lookup });
    syncBuiltinESMExports();
    await Promise.all(clients.splice(0).map((client) => client.close()));
  });
  afterAll(() => server.stop());

  function clientOf(allowLoopback: boolean): OpenKubeClient {
    const target = { server: `https://${NAME}:${server.port}`, ca, tlsServerName: 'localhost', token: 'secret' };
    const client = createKubeClient(target, { clock: systemClock, egress: { allowLoopback }, maxConnections: 1 });
    clients.push(client);
    server.seen.length = 0;
    return client;
  }
  const refusal = (range: string): object => ({ errorClass: 'credential', message: expect.stringContaining(range) });

  test('after a connection that was allowed is refused at the next one', async () => {
    resolveTo(v4('127.0.0.1'), v4('169.254.169.254'));
    await expect(clientOf(true).get(resources.configmaps, key)).resolves.toMatchObject(object);
    await expect(clientOf(true).get(resources.configmaps, key)).rejects.toMatchObject(refusal('link-local'));
    expect(server.seen).toHaveLength(0);
  });

  test('between the check and the connection is refused before anything is sent', async () => {
    let read = 0;
    const changing = {
      family: 4,
      get address(): string {
        read += 1;
        return read === 1 ? '10.0.0.1' : '127.0.0.1';
      },
    };
    resolveTo([changing]);
    await expect(clientOf(false).get(resources.configmaps, key)).rejects.toMatchObject(refusal('loopback'));
    expect(read).toBeGreaterThan(1);
    expect(server.seen).toHaveLength(0);
  });

  test.each([
    ['one of several', [...v4('10.0.0.1'), ...v4('127.0.0.1')], 'loopback'],
    ['in IPv6', [{ address: '::ffff:169.254.169.254', family: 6 }], 'link-local'],
    ['of the cloud’s own services', [{ address: 'fd00:ec2::254', family: 6 }], 'cloud service'],
    ['of nowhere', v4('0.0.0.0'), 'unspecified'],
  ])('to one that is refused, %s, connects nowhere', async (_what, addresses, range) => {
    resolveTo(addresses);
    await expect(clientOf(false).get(resources.configmaps, key)).rejects.toMatchObject(refusal(range));
    expect(server.seen).toHaveLength(0);
  });
});
