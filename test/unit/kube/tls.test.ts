import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Authority } from '../../../lib/embedded/pki/authority.ts';
import { createKubeClient } from '../../../lib/kube/client.ts';
import type { ConnectionTarget } from '../../../lib/kube/target.ts';
import { resources } from '../../../lib/model/api.ts';
import { systemClock } from '../../../lib/model/clock.ts';
import { json, ScriptedServer } from '../../support/kube/scripted-server.ts';

const { configmaps } = resources;
const key = { namespace: 'ns', name: 'a' };
const object = { metadata: { ...key, uid: 'u', resourceVersion: '1' } };

describe('over TLS', () => {
  let ours: Authority;
  let theirs: Authority;
  let server: ScriptedServer;
  const users: (string | undefined)[] = [];

  beforeAll(async () => {
    [ours, theirs] = await Promise.all([Authority.create('ours'), Authority.create('theirs')]);
    const { certificate: cert, key } = await ours.server();
    const tls = { cert, key, ca: ours.certificate, requestCert: true, rejectUnauthorized: false };
    server = await ScriptedServer.start((seen, response, request) => {
      const { subject } = (request.socket as TLSSocket).getPeerCertificate();
      // An empty map, where no certificate was shown.
      users.push((subject as { CN?: string } | undefined)?.CN);
      return json(200, object)(seen, response, request);
    }, tls);
  });
  afterAll(() => server.stop());

  const get = (target: Partial<ConnectionTarget>) => server.client(target).get(configmaps, key);

  test('a server of the authority is believed, and the client shows its certificate', async () => {
    const { certificate, key } = await ours.client('somebody', []);
    await get({ ca: ours.certificate, clientCertificate: certificate, clientKey: key });
    expect(users.at(-1)).toBe('somebody');
  });

  test.each<[string, () => Partial<ConnectionTarget>]>([
    ['of another authority', () => ({ ca: theirs.certificate })],
    ['of an authority that nobody knows', () => ({})],
    ['of another name', () => ({ ca: ours.certificate, tlsServerName: 'api.example.org' })],
  ])('a server %s is sent nothing', async (_name, target) => {
    users.length = 0;
    await expect(get({ ...target(), token: 'secret' })).rejects.toMatchObject({ errorClass: 'unavailable' });
    expect(users).toStrictEqual([]);
  });

  test('a server that offers HTTP/2 is spoken to in HTTP/1.1', async () => {
    const { certificate: cert, key: serverKey } = await ours.server();
    const versions: string[] = [];
    const modern = createSecureServer({ cert, key: serverKey, allowHTTP1: true }, (request, response) => {
      versions.push(request.httpVersion);
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(object));
    });
    await new Promise<void>((resolve) => modern.listen(0, '127.0.0.1', resolve));
    const { port } = modern.address() as AddressInfo;
    const client = createKubeClient(
      { server: `https://127.0.0.1:${port}`, ca: ours.certificate },
      { clock: systemClock, egress: { allowLoopback: true } },
    );
    await client.get(configmaps, key);
    await client.close();
    await new Promise((resolve) => modern.close(resolve));
    expect(versions).toStrictEqual(['1.1']);
  });
});

test('what functions import of lib/kube brings no client-node', async () => {
  const { metafile } = await build({
    entryPoints: ['client', 'kubeconfig', 'identity', 'discovery', 'events', 'dry-run', 'json'].map(
      (name) => `lib/kube/${name}.ts`,
    ),
    bundle: true,
    platform: 'node',
    format: 'esm',
    write: false,
    outdir: 'none',
    metafile: true,
  });
  const packages = Object.keys(metafile.inputs).filter((input) => input.includes('node_modules/@kubernetes/'));
  expect(packages).toStrictEqual([]);
});
