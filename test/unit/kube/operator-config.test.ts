import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { loadInClusterTarget, loadOperatorTarget } from '../../../lib/kube/operator-config.ts';
import type { KbindError } from '../../../lib/model/errors.ts';

const folder = mkdtempSync(join(tmpdir(), 'operator-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const config = (user: unknown, cluster: Readonly<Record<string, unknown>> = {}): string =>
  stringify({
    'current-context': 'x',
    clusters: [{ name: 'c', cluster: { server: 'https://api.example.org', ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace: 'home' } }],
  });
const file = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const failure = (run: () => unknown): KbindError => {
  try {
    run();
  } catch (error) {
    return error as KbindError;
  }
  throw new Error('did not fail');
};

test('a file and its text are the same', () => {
  const text = config({ token: 't' }, { 'certificate-authority-data': base64('CA'), 'tls-server-name': 'other' });
  const expected = {
    server: 'https://api.example.org',
    ca: 'CA',
    tlsServerName: 'other',
    contextNamespace: 'home',
    token: 't',
  };
  expect(loadOperatorTarget(text)).toStrictEqual(expected);
  expect(loadOperatorTarget(file('kubeconfig', text))).toStrictEqual(expected);
});

test('files that it names are read, relative to it', () => {
  file('ca.pem', 'CA');
  file('cert.pem', 'CERT');
  file('key.pem', 'KEY');
  const text = config(
    { 'client-certificate': 'cert.pem', 'client-key': 'key.pem' },
    { 'certificate-authority': 'ca.pem' },
  );
  expect(loadOperatorTarget(file('files', text))).toMatchObject({
    ca: 'CA',
    clientCertificate: 'CERT',
    clientKey: 'KEY',
  });
});

test('a user name and password', () => {
  expect(loadOperatorTarget(config({ username: 'a', password: 'b' }))).toMatchObject({ username: 'a', password: 'b' });
});

test('an exec plugin of the operator is asked for the token, and asked again', async () => {
  const counter = join(folder, 'count');
  const script = file(
    'plugin.sh',
    `#!/bin/sh\necho x >> ${counter}\nn=$(wc -l < ${counter} | tr -d ' ')\n` +
      `echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t'$n'","expirationTimestamp":"2020-01-01T00:00:00Z"}}'\n`,
  );
  chmodSync(script, 0o755);
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: script, interactiveMode: 'Never' };
  const target = loadOperatorTarget(config({ exec }));
  expect(target.token).toBeUndefined();
  expect(await target.authorization?.()).toBe('Bearer t1');
  expect(await target.authorization?.()).toBe('Bearer t2');
});

test('a plugin that fails is class unauthorized', async () => {
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: join(folder, 'no-such'),
    interactiveMode: 'Never',
  };
  const target = loadOperatorTarget(config({ exec }));
  await expect(target.authorization?.()).rejects.toMatchObject({ errorClass: 'unauthorized' });
});

test.each<[string, () => unknown, string]>([
  ['no file', () => loadOperatorTarget(join(folder, 'none')), 'kubeconfig: cannot be read (ENOENT)'],
  ['no YAML', () => loadOperatorTarget('hunter2: [\n'), 'kubeconfig: is not valid'],
  ['nothing in it', () => loadOperatorTarget('{}\n'), 'kubeconfig:'],
  [
    'no TLS check',
    () => loadOperatorTarget(config({}, { 'insecure-skip-tls-verify': true })),
    'insecure-skip-tls-verify',
  ],
  ['a proxy', () => loadOperatorTarget(config({}, { 'proxy-url': 'http://p' })), 'proxy-url'],
  [
    'a CA file that is not there',
    () => loadOperatorTarget(config({}, { 'certificate-authority': '/no/such' })),
    'certificate-authority',
  ],
  ['no cluster around it', () => loadInClusterTarget(), 'runs in no cluster'],
])('%s is one clear reason', (_name, run, message) => {
  const error = failure(run);
  expect(error.errorClass).toBe('credential');
  expect(error.message).toContain(message);
  expect(error.message).not.toContain('hunter2');
});
