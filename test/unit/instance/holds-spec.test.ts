import { describe, expect, test } from 'vitest';
import type { Json, KubeObject } from '../../../lib/model/api.ts';
import { holdsSpec, holdsSpecLoosely } from '../../../lib/reconcile/instance/holds-spec.ts';

const source = (spec: Json): KubeObject => ({
  apiVersion: 'v1',
  kind: 'W',
  metadata: { name: 'w', uid: 'u', resourceVersion: '1' },
  spec,
});

const copy = (spec: Json, owned?: Json, manager = 'kbind-konnector'): KubeObject => ({
  ...source(spec),
  metadata: {
    name: 'w',
    uid: 'u',
    resourceVersion: '1',
    ...(owned === undefined
      ? {}
      : { managedFields: [{ manager, operation: 'Apply' as const, fieldsV1: { 'f:spec': owned } }] }),
  },
});

const PORTS = { ports: [{ name: 'http' }] };
const DEFAULTED = { ports: [{ name: 'http', protocol: 'TCP' }] };

describe('holdsSpec', () => {
  test.each<[string, KubeObject, Json, boolean]>([
    ['what the provider added beside it is its own', copy({ size: 's', tier: 'basic' }), { size: 's' }, true],
    [
      'a map with a member that is called as raw numbers are kept',
      copy({ rawJSON: '1', tier: 'b' }),
      { rawJSON: '1' },
      true,
    ],
    ['a changed value', copy({ size: 'x' }), { size: 's' }, false],
    ['a missing field', copy({}), { size: 's' }, false],
    ['a default inside a list item, the list still ours', copy(DEFAULTED, { 'f:ports': {} }), PORTS, true],
    [
      'a default inside an item of a map list, the list still ours',
      copy(DEFAULTED, { 'f:ports': { 'k:{"name":"http"}': {} } }),
      PORTS,
      true,
    ],
    ['an atomic spec that is still ours', copy(DEFAULTED, {}), PORTS, true],
    ['an item that somebody edited: the list is no longer ours', copy(DEFAULTED, { 'f:size': {} }), PORTS, false],
    ['an item that somebody edited: nothing is ours', copy(DEFAULTED), PORTS, false],
    ['ownership of another manager is not ours', copy(DEFAULTED, { 'f:ports': {} }, 'kubectl'), PORTS, false],
    ['a changed value inside a list item', copy({ ports: [{ name: 'https' }] }, { 'f:ports': {} }), PORTS, false],
    ['another length', copy({ ports: [{ name: 'http' }, { name: 'b' }] }, { 'f:ports': {} }), PORTS, false],
    ['numbers by value', copy({ n: JSON.parse('1') as number }), { n: 1.0 }, true],
  ])('%s', (_what, held, wanted, expected) => {
    expect(holdsSpec(held, source(wanted))).toBe(expected);
  });

  test('loosely, whoever owns the lists', () => {
    expect(holdsSpecLoosely(copy(DEFAULTED), source(PORTS))).toBe(true);
    expect(holdsSpecLoosely(copy({ ports: [{ name: 'x' }] }), source(PORTS))).toBe(false);
  });
});
