import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { Authority } from '../../../lib/embedded/pki/authority.ts';
import { parseForeignKubeconfig } from '../../../lib/kube/kubeconfig.ts';
import { isError } from '../../../lib/model/errors.ts';

const authority = await Authority.create('test');
const [{ certificate: PEM, key: KEY }, { key: OTHER_KEY }] = await Promise.all([
  authority.client('a', []),
  authority.client('b', []),
]);
const GARBAGE = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const strict = { allowLoopback: false };

interface Parts {
  readonly cluster?: unknown;
  readonly user?: unknown;
  readonly context?: unknown;
  readonly top?: Readonly<Record<string, unknown>>;
}

const good = {
  cluster: { server: 'https://api.example.org:6443', 'certificate-authority-data': base64(PEM) },
  user: { token: 'secret-token' },
  context: { cluster: 'c', user: 'u', namespace: 'tenant' },
};

const config = ({ cluster = good.cluster, user = good.user, context = good.context, top = {} }: Parts = {}): string =>
  stringify({
    apiVersion: 'v1',
    kind: 'Config',
    preferences: {},
    'current-context': 'x',
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context }],
    ...top,
  });

function refusal(text: string, egress = strict): string {
  try {
    parseForeignKubeconfig(text, egress);
  } catch (error) {
    if (isError(error, 'credential')) return error.message;
    throw error;
  }
  throw new Error('was not refused');
}

describe('a self-contained kubeconfig is taken', () => {
  test('with a token', () => {
    expect(parseForeignKubeconfig(config(), strict)).toStrictEqual({
      server: 'https://api.example.org:6443',
      ca: PEM,
      token: 'secret-token',
      contextNamespace: 'tenant',
    });
  });

  test('with a client certificate, a name to verify and no authority', () => {
    const user = { 'client-certificate-data': base64(PEM), 'client-key-data': base64(KEY) };
    const cluster = { server: 'https://10.0.0.1/k8s/clusters/a', 'tls-server-name': 'api.example.org' };
    expect(
      parseForeignKubeconfig(config({ user, cluster, context: { cluster: 'c', user: 'u' } }), strict),
    ).toStrictEqual({
      server: 'https://10.0.0.1/k8s/clusters/a',
      tlsServerName: 'api.example.org',
      clientCertificate: PEM,
      clientKey: KEY,
    });
  });

  test('with a user name and password', () => {
    const target = parseForeignKubeconfig(config({ user: { username: 'a', password: 'b' } }), strict);
    expect(target).toMatchObject({ username: 'a', password: 'b' });
  });

  test('with entries of other contexts that would be refused', () => {
    const top = {
      users: [
        { name: 'other', user: { exec: { command: 'sh' } } },
        { name: 'u', user: good.user },
      ],
    };
    expect(parseForeignKubeconfig(config({ top }), strict).token).toBe('secret-token');
  });

  test('as JSON', () => {
    const text = JSON.stringify({
      'current-context': 'x',
      clusters: [{ name: 'c', cluster: good.cluster }],
      users: [{ name: 'u', user: {} }],
      contexts: [{ name: 'x', context: good.context }],
    });
    expect(parseForeignKubeconfig(text, strict).server).toBe(good.cluster.server);
  });

  test('on loopback, in a local run', () => {
    const text = config({ cluster: { server: 'https://127.0.0.1:6443' } });
    expect(parseForeignKubeconfig(text, { allowLoopback: true }).server).toBe('https://127.0.0.1:6443');
    expect(refusal(text)).toContain('clusters[0].cluster.server leads to a loopback address');
  });
});

describe('a field that runs, reads or hides something is refused by name', () => {
  test.each<[string, Parts, string]>([
    ['exec', { user: { exec: { command: 'sh', args: ['-c', 'id'] } } }, 'users[0].user.exec is not allowed'],
    ['auth-provider', { user: { 'auth-provider': { name: 'gcp' } } }, 'users[0].user.auth-provider is not allowed'],
    ['tokenFile', { user: { tokenFile: '/var/run/token' } }, 'users[0].user.tokenFile is not allowed'],
    ['client-certificate', { user: { 'client-certificate': '/x' } }, 'users[0].user.client-certificate is not allowed'],
    ['client-key', { user: { 'client-key': '/x' } }, 'users[0].user.client-key is not allowed'],
    ['impersonation', { user: { ...good.user, as: 'admin' } }, 'users[0].user.as is not allowed'],
    ['an unknown user field', { user: { 'x-new': 1 } }, 'users[0].user.x-new is not allowed'],
    [
      'certificate-authority',
      { cluster: { server: 'https://a.b', 'certificate-authority': '/etc/passwd' } },
      'clusters[0].cluster.certificate-authority is not allowed',
    ],
    [
      'proxy-url',
      { cluster: { ...good.cluster, 'proxy-url': 'http://e.vil' } },
      'clusters[0].cluster.proxy-url is not allowed',
    ],
    [
      'insecure-skip-tls-verify',
      { cluster: { ...good.cluster, 'insecure-skip-tls-verify': true } },
      'clusters[0].cluster.insecure-skip-tls-verify is not allowed',
    ],
    ['plain http', { cluster: { server: 'http://a.b' } }, 'clusters[0].cluster.server is not https'],
    ['another scheme', { cluster: { server: 'file:///etc/passwd' } }, 'clusters[0].cluster.server is not https'],
    ['no URL', { cluster: { server: 'api.example.org' } }, 'clusters[0].cluster.server is no URL'],
    [
      'a password in the URL',
      { cluster: { server: 'https://a:b@c.d' } },
      'clusters[0].cluster.server holds a user name or password',
    ],
    [
      'a query in the URL',
      { cluster: { server: 'https://c.d?x=y' } },
      'clusters[0].cluster.server has a query or a fragment',
    ],
    [
      'link-local',
      { cluster: { server: 'https://169.254.169.254' } },
      'clusters[0].cluster.server leads to a link-local address',
    ],
    [
      'a decimal literal',
      { cluster: { server: 'https://2130706433' } },
      'clusters[0].cluster.server leads to a loopback address',
    ],
    [
      'an octal literal',
      { cluster: { server: 'https://0177.0.0.1' } },
      'clusters[0].cluster.server leads to a loopback address',
    ],
    [
      'mapped loopback',
      { cluster: { server: 'https://[::ffff:7f00:1]' } },
      'clusters[0].cluster.server leads to a loopback address',
    ],
    ['no server', { cluster: {} }, 'clusters[0].cluster.server is missing'],
    ['an empty server', { cluster: { server: '' } }, 'clusters[0].cluster.server is empty'],
    [
      'a CA that is no PEM',
      { cluster: { server: 'https://a.b', 'certificate-authority-data': base64('x') } },
      'certificate-authority-data is no base64 of PEM',
    ],
    ['a token with CRLF', { user: { token: 'a\r\nX-Evil: 1' } }, 'users[0].user.token holds control characters'],
    ['a token beyond ASCII', { user: { token: 'tökén' } }, 'users[0].user.token is no token'],
    ['a user name with a line end', { user: { username: 'a\nb' } }, 'users[0].user.username holds control characters'],
    [
      'a certificate without key',
      { user: { 'client-certificate-data': base64(PEM) } },
      'users[0].user.client-key-data is missing',
    ],
    [
      'a key without certificate',
      { user: { 'client-key-data': base64(KEY) } },
      'users[0].user.client-certificate-data is missing',
    ],
    ['a token that is a map', { user: { token: { a: 1 } } }, 'users[0].user.token is missing or no string'],
    ['a context of nothing', { top: { 'current-context': 'nope' } }, 'current-context names nothing in contexts'],
    [
      'a cluster of nothing',
      { context: { cluster: 'nope', user: 'u' } },
      'contexts[0].context.cluster names nothing in clusters',
    ],
    [
      'a user of nothing',
      { context: { cluster: 'c', user: 'nope' } },
      'contexts[0].context.user names nothing in users',
    ],
    ['an unknown top field', { top: { includes: ['/etc'] } }, 'includes is not allowed'],
    ['an unknown context field', { context: { ...good.context, exec: 1 } }, 'contexts[0].context.exec is not allowed'],
    [
      'a field beside the cluster',
      { top: { clusters: [{ name: 'c', cluster: good.cluster, exec: 1 }] } },
      'clusters[0].exec is not allowed',
    ],
    ['another kind', { top: { kind: 'Pod' } }, 'kind is not valid'],
    ['no context', { top: { 'current-context': undefined } }, 'current-context is missing'],
  ])('%s', (_name, parts, message) => {
    expect(refusal(config(parts))).toContain(message);
  });
});

describe('key material that OpenSSL does not take is refused before it is used', () => {
  const pair = (certificate: string, key: string): string =>
    config({ user: { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) } });
  test.each<[string, string, string]>([
    [
      'a CA of garbage',
      config({ cluster: { server: 'https://a.b', 'certificate-authority-data': base64(GARBAGE) } }),
      'clusters[0].cluster.certificate-authority-data is no certificate',
    ],
    ['a certificate of garbage', pair(GARBAGE, KEY), 'users[0].user.client-certificate-data is no certificate'],
    [
      'a key of garbage',
      pair(PEM, GARBAGE.replaceAll('CERTIFICATE', 'PRIVATE KEY')),
      'users[0].user.client-key-data is no key, or not that of the certificate',
    ],
    [
      'the key of another certificate',
      pair(PEM, OTHER_KEY),
      'users[0].user.client-key-data is no key, or not that of the certificate',
    ],
    [
      'a user name with a colon',
      config({ user: { username: 'a:b', password: 'c' } }),
      'users[0].user.username holds a colon',
    ],
  ])('%s', (_name, text, message) => {
    expect(refusal(text)).toContain(message);
  });
});

describe('a text that is no kubeconfig is refused', () => {
  test.each<[string, string, string]>([
    ['empty', ' \n', 'it is empty'],
    ['no YAML', '{a: [', 'it is no valid YAML'],
    ['a scalar', 'hello', 'it is missing or no object'],
    ['a list', '[]', 'it is missing or no object'],
    ['duplicate keys', 'a: 1\na: 2\n', 'it has a key twice in one map'],
    ['two documents', `${config()}---\n${config()}`, 'it is no valid YAML'],
    ['a tag that makes objects', 'a: !!js/function "x"', 'it is no valid YAML'],
    ['an alias', 'a: &x {}\nb: *x\n', 'it uses YAML aliases'],
    ['a merge key', `x: &x {a: 1}\n<<: *x\n`, 'it uses YAML aliases'],
    ['too large', `# ${'x'.repeat(300 * 1024)}\n${config()}`, 'it is larger than 256 KiB'],
  ])('%s', (_name, text, message) => {
    expect(refusal(text)).toContain(message);
  });

  test('an alias bomb is refused at once', () => {
    const levels = Array.from(
      { length: 30 },
      (_, n) => `l${n + 1}: &l${n + 1} [*l${n},*l${n},*l${n},*l${n},*l${n},*l${n}]`,
    );
    const started = performance.now();
    expect(refusal(`l0: &l0 x\n${levels.join('\n')}\n`)).toContain('uses YAML aliases');
    expect(performance.now() - started).toBeLessThan(2_000);
  });

  test.each<[string, string]>([
    ['nesting without end', `a: ${'['.repeat(100_000)}`],
    ['nesting with an end', `a: ${'['.repeat(100_000)}${']'.repeat(100_000)}`],
    ['nested maps', Array.from({ length: 700 }, (_, depth) => `${' '.repeat(depth)}a:\n`).join('')],
    ['tens of thousands of keys', Array.from({ length: 28_000 }, (_, n) => `k${n}: 1\n`).join('')],
    ['tens of thousands of keys in one line', `{${Array.from({ length: 40_000 }, (_, n) => `z${n}`).join(',')}}`],
  ])('%s is refused soon, not a crash', (_name, text) => {
    const started = performance.now();
    expect(refusal(text)).toContain('kubeconfig:');
    expect(performance.now() - started).toBeLessThan(10_000);
  });
});

describe('no value of it is ever said', () => {
  const SECRET = 'hunter2hunter2';
  test.each<[string, string]>([
    ['a broken YAML', `token: "${SECRET}\nusers: [`],
    ['a duplicate key', `${SECRET}: 1\n${SECRET}: 2\n`],
    ['a key that is foreign text', config({ user: { [`${SECRET} \u0007`]: 1 } })],
    ['a token with a line end', config({ user: { token: `${SECRET}\r\n` } })],
    ['a server with a password', config({ cluster: { server: `https://u:${SECRET}@a.b` } })],
    ['a server that is no URL', config({ cluster: { server: `https://${SECRET} x` } })],
    ['key material that is no PEM', config({ user: { 'client-certificate-data': SECRET, 'client-key-data': SECRET } })],
    ['a context name', config({ top: { 'current-context': SECRET } })],
    ['another kind', config({ top: { kind: SECRET } })],
  ])('%s', (_name, text) => {
    expect(refusal(text)).not.toContain('hunter2');
  });
});
