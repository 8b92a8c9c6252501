import { describe, expect, test } from 'vitest';
import { checkHost, guardedLookup, refusedRange } from '../../../lib/kube/egress.ts';

const strict = { allowLoopback: false };
const local = { allowLoopback: true };

describe('addresses', () => {
  test.each([
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['::1', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['::ffff:7f00:1', 'loopback'],
    ['0:0:0:0:0:ffff:7f00:0001', 'loopback'],
    ['::127.0.0.1', 'loopback'],
    ['64:ff9b::7f00:1', 'loopback'],
    ['64:ff9b:1::7f00:1', 'loopback'],
    ['2002:7f00:1::', 'loopback'],
    ['::ffff:0:127.0.0.1', 'loopback'],
    ['169.254.169.254', 'link-local'],
    ['169.254.170.2', 'link-local'],
    ['::ffff:169.254.169.254', 'link-local'],
    ['64:ff9b::a9fe:a9fe', 'link-local'],
    ['2002:a9fe:a9fe::1', 'link-local'],
    ['fe80::1', 'link-local'],
    ['fe80::1%eth0', 'link-local'],
    ['224.0.0.1', 'multicast'],
    ['239.255.255.255', 'multicast'],
    ['ff02::1', 'multicast'],
    ['0.0.0.0', 'unspecified'],
    ['0.1.2.3', 'unspecified'],
    ['::', 'unspecified'],
    ['::ffff:0.0.0.0', 'unspecified'],
    ['255.255.255.255', 'broadcast'],
    ['fd00:ec2::254', 'cloud service'],
    ['', 'malformed'],
    ['localhost', 'malformed'],
  ])('%s is refused as %s', (address, range) => {
    expect(refusedRange(address, strict)).toBe(range);
  });

  test.each([
    '10.0.0.1',
    '172.16.0.1',
    '192.168.1.1',
    '100.64.0.1',
    '52.1.2.3',
    '2600:1f18::1',
    'fd12:3456::1',
    '::ffff:10.0.0.1',
  ])('%s may be connected to', (address) => {
    expect(refusedRange(address, strict)).toBeUndefined();
  });

  test('a local run may connect to loopback, and to nothing else that is refused', () => {
    expect(refusedRange('127.0.0.1', local)).toBeUndefined();
    expect(refusedRange('::1', local)).toBeUndefined();
    expect(refusedRange('169.254.169.254', local)).toBe('link-local');
    expect(refusedRange('0.0.0.0', local)).toBe('unspecified');
  });
});

describe('hosts of URLs', () => {
  test.each([
    'https://127.0.0.1',
    'https://127.1',
    'https://2130706433',
    'https://0x7f000001',
    'https://0x7f.1',
    'https://0177.0.0.1',
    'https://127.0.0.1.',
    'https://[::1]:6443',
    'https://[::ffff:127.0.0.1]',
    'https://[::ffff:a9fe:a9fe]',
    'https://169.254.169.254',
    'https://2852039166',
    'https://0',
    'https://[::]',
    'https://①②⑦.⓪.⓪.①',
  ])('%s is refused', (url) => {
    expect(() => checkHost(new URL(url).hostname, strict)).toThrow(/^cluster\.server leads to a /);
  });

  test('names and other addresses pass here; names are checked when they resolve', () => {
    expect(() => checkHost('localhost', strict)).not.toThrow();
    expect(() => checkHost('10.0.0.1', strict)).not.toThrow();
  });
});

test('a name that resolves to a refused address fails its lookup', async () => {
  const look = (all: boolean): Promise<unknown> =>
    new Promise((resolve) => {
      guardedLookup(strict)('localhost', { all }, (error, address) => resolve(error ?? address));
    });
  for (const all of [true, false]) {
    await expect(look(all)).resolves.toMatchObject({ errorClass: 'credential', message: /loopback/ });
  }
});

test('a local run resolves names of this machine, in both forms', async () => {
  const look = (all: boolean): Promise<unknown> =>
    new Promise((resolve) => {
      guardedLookup(local)('localhost', { all }, (error, address) => resolve(error ?? address));
    });
  await expect(look(false)).resolves.toMatch(/^(127\.0\.0\.1|::1)$/);
  await expect(look(true)).resolves.toContainEqual({ address: expect.any(String), family: expect.any(Number) });
});
