import { describe, expect, test } from 'vitest';
import { parseJson } from '../../../lib/kube/json.ts';
import type { KubeObject } from '../../../lib/model/api.ts';
import { schemaFromCrd } from '../../../lib/schema/from-crd.ts';
import { byVersionPriority } from '../../../lib/schema/version-priority.ts';

const version = (name: string, more: object = {}): object => ({
  name,
  served: true,
  storage: false,
  schema: { openAPIV3Schema: { type: 'object', description: name } },
  ...more,
});

function provider(spec: object, metadata: object = {}): KubeObject {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.org', uid: 'u', resourceVersion: '1', ...metadata },
    spec: {
      group: 'example.org',
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList', shortNames: ['wd'] },
      ...spec,
    },
    status: { storedVersions: ['v1'] },
  };
}

describe('which version is kept', () => {
  test.each([
    ['the storage version', [version('v1'), version('v2', { storage: true })], 'v2'],
    [
      'the preferred served one, when the storage version is not served',
      [version('v1alpha1'), version('v1'), version('v2', { storage: true, served: false })],
      'v1',
    ],
    ['the only one', [version('v1beta1', { storage: true })], 'v1beta1'],
  ])('%s', (_name, versions, kept) => {
    const schema = schemaFromCrd(provider({ versions }));
    expect(schema.version).toBe(kept);
    expect(schema.spec).toMatchObject({ versions: [{ name: kept, served: true, storage: true }] });
  });

  test('none is served: an error that names the CRD', () => {
    const crd = provider({ versions: [version('v1', { served: false, storage: true })] });
    expect(() => schemaFromCrd(crd)).toThrowError(/widgets\.example\.org .*serves no version/);
  });

  test('the others are named as dropped', () => {
    const versions = [version('v1beta1'), version('v1', { storage: true }), version('v1alpha1', { served: false })];
    expect(schemaFromCrd(provider({ versions })).droppedVersions).toEqual(['v1beta1', 'v1alpha1']);
  });

  test('versions are preferred as Kubernetes does', () => {
    const names = ['foo1', 'v1alpha2', 'v10', 'v2beta1', 'v1', 'v11alpha1', 'bar', 'v2beta10'];
    const sorted = names.map((name) => ({ name })).sort(byVersionPriority);
    expect(sorted.map(({ name }) => name)).toEqual([
      'v10',
      'v1',
      'v2beta10',
      'v2beta1',
      'v11alpha1',
      'v1alpha2',
      'bar',
      'foo1',
    ]);
  });
});

describe('what travels', () => {
  test('names, scope, schema, subresources and columns; conversion is None', () => {
    const parts = {
      schema: { openAPIV3Schema: { type: 'object' } },
      subresources: { status: {} },
      additionalPrinterColumns: [{ name: 'Size', type: 'string', jsonPath: '.spec.size' }],
      selectableFields: [{ jsonPath: '.spec.size' }],
    };
    const versions = [version('v1', { storage: true, deprecated: true, ...parts })];
    const conversion = { strategy: 'Webhook', webhook: { clientConfig: { url: 'https://x' } } };
    const { spec } = schemaFromCrd(provider({ versions, conversion }));
    expect(spec).toEqual({
      group: 'example.org',
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList', shortNames: ['wd'] },
      conversion: { strategy: 'None' },
      versions: [{ name: 'v1', served: true, storage: true, ...parts }],
    });
  });

  test('of the annotations only api-approved.kubernetes.io', () => {
    const approved = { 'api-approved.kubernetes.io': 'https://example.org/pull/1' };
    const annotations = { ...approved, 'argocd.argoproj.io/instance': 'x' };
    const versions = [version('v1', { storage: true })];
    expect(schemaFromCrd(provider({ versions }, { annotations })).annotations).toEqual(approved);
    expect(schemaFromCrd(provider({ versions })).annotations).toEqual({});
  });

  test.each([
    ['without a schema', {}, { schema: undefined }],
    ['with preserveUnknownFields', { preserveUnknownFields: true }, {}],
  ])('a CRD of v1beta1 %s keeps unknown fields by its schema', (_name, spec, more) => {
    const schema = schemaFromCrd(provider({ ...spec, versions: [version('v1', { storage: true, ...more })] }));
    expect(schema.spec).toMatchObject({
      versions: [{ schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } } }],
    });
    expect(schema.spec).not.toHaveProperty('preserveUnknownFields');
  });
});

describe('the hash', () => {
  test('is sha256 and 16 hex digits, of the spec alone', () => {
    const versions = [version('v1', { storage: true })];
    const { hash } = schemaFromCrd(provider({ versions }));
    expect(hash).toMatch(/^sha256:[0-9a-f]{16}$/);
    expect(schemaFromCrd(provider({ versions }, { labels: { a: 'b' }, generation: 7 })).hash).toBe(hash);
    expect(schemaFromCrd(provider({ versions, scope: 'Cluster' })).hash).not.toBe(hash);
  });

  test('tells integers past 2^53 apart', () => {
    const withDefault = (text: string): string =>
      schemaFromCrd(
        provider({
          versions: [
            version('v1', {
              storage: true,
              schema: parseJson(`{"openAPIV3Schema":{"type":"integer","default":${text}}}`),
            }),
          ],
        }),
      ).hash;
    expect(withDefault('9007199254740993')).not.toBe(withDefault('9007199254740992'));
  });
});
