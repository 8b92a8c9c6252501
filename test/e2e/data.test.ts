import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { resources, type ResourceRef } from '../../lib/model/api.ts';
import {
  ensureNamespace,
  installCrd,
  makeBinding,
  makeConnection,
  startF0,
  untilGone,
  untilObject,
  untilReady,
  type F0,
} from '../support/e2e/f0.ts';
import { until } from '../support/e2e/until.ts';

/** Folder with crds/ and samples/ of real projects; CI hands it over. */
const folder = process.env['KBIND_E2E_DATA'];

interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string> };
  spec?: unknown;
}
interface CrdManifest extends Manifest {
  spec: {
    group: string;
    scope: string;
    names: { plural: string; kind: string };
    versions: { name: string; storage: boolean; served: boolean }[];
  };
}

/** Where most of the spec is immutable: what may be edited. */
const SMALL_EDITS: Record<string, Record<string, unknown> | undefined> = {
  'compositeresourcedefinitions.apiextensions.crossplane.io': { defaultCompositionUpdatePolicy: 'Manual' },
};

const load = async <T>(...path: string[]): Promise<T> =>
  parse(await readFile(join(folder ?? '', ...path), 'utf8')) as T;

describe.runIf(folder !== undefined)('the real CRDs and samples of public projects', () => {
  let f0: F0;
  beforeAll(async () => {
    f0 = await startF0();
    await makeConnection(f0.consumer);
    for (const namespace of ['sandbox', 'application-1', 'site-ns']) await ensureNamespace(f0.consumer, namespace);
  });
  afterAll(() => f0.stop());

  const files =
    folder === undefined ? [] : readdirSync(join(folder, 'crds')).map((file) => file.replace(/\.yaml$/, ''));

  test.each(files)('%s is bound, synced, updated and unbound', async (name) => {
    const crd = await load<CrdManifest>('crds', `${name}.yaml`);
    await installCrd(f0.provider, {
      ...crd,
      metadata: { ...crd.metadata, labels: { 'core.kbind.io/exported': 'true' } } as CrdManifest['metadata'],
    });
    await makeBinding(f0.consumer, { name, apis: [name] });
    await untilReady(f0.consumer, resources.clusterBindings, { name });
    const version = crd.spec.versions.find(({ storage }) => storage)?.name ?? '';
    const ref: ResourceRef = {
      group: crd.spec.group,
      version,
      resource: crd.spec.names.plural,
      kind: crd.spec.names.kind,
      namespaced: crd.spec.scope === 'Namespaced',
    };
    const samples = await Promise.all([1, 2, 3].map((index) => load<Manifest>('samples', `${name}.${index}.yaml`)));
    for (const sample of samples) await syncSample(ref, sample);
    await updateSample(ref, samples);
    await f0.consumer.delete(resources.clusterBindings, { name });
    await untilGone(f0.consumer, resources.clusterBindings, { name });
    await untilGone(f0.consumer, resources.crds, { name });
    expect(await f0.provider.list(ref, { labelSelector: 'core.kbind.io/managed=true' })).toEqual([]);
  });

  async function syncSample(ref: ResourceRef, sample: Manifest): Promise<void> {
    // The consumer serves the pulled version only; a sample at another version of the same schema is written there.
    const manifest = {
      ...sample,
      apiVersion: `${ref.group}/${ref.version}`,
      ...(ref.namespaced ? { metadata: { namespace: 'default', ...sample.metadata } } : {}),
    };
    const key = ref.namespaced
      ? { name: manifest.metadata.name, namespace: manifest.metadata.namespace ?? 'default' }
      : { name: manifest.metadata.name };
    await until(`${ref.kind} ${key.name} is admitted`, async () => {
      try {
        return await f0.consumer.create(ref, manifest, key.namespace);
      } catch (error) {
        if (String(error).includes(' 422 ') || String(error).includes(': 422')) return 'refused' as const;
        throw error;
      }
    });
    const made = await f0.consumer.find(ref, key);
    if (made === undefined) {
      // Only a sample of a version that is not stored may be refused by the stored version's schema.
      if (sample.apiVersion === manifest.apiVersion)
        throw new Error(`${ref.kind} ${key.name} was refused at its own version`);
      return;
    }
    await untilObject(f0.provider, ref, key, (copy) => JSON.stringify(copy.spec) === JSON.stringify(made.spec));
  }

  /** Gives the first object that was admitted the spec of another sample, where the schema allows it. */
  async function updateSample(ref: ResourceRef, samples: readonly Manifest[]): Promise<void> {
    const [made, other] = await f0.consumer.list(ref);
    if (made === undefined || other === undefined)
      throw new Error(`fewer than two of ${samples.length} samples were admitted`);
    const key = {
      name: made.metadata.name,
      ...(made.metadata.namespace === undefined ? {} : { namespace: made.metadata.namespace }),
    };
    const small = SMALL_EDITS[`${ref.resource}.${ref.group}`];
    const edited =
      small === undefined
        ? await f0.consumer.replace(ref, { ...made, spec: other.spec ?? {} })
        : await f0.consumer.merge(ref, key, { spec: small });
    expect(JSON.stringify(edited.spec)).not.toBe(JSON.stringify(made.spec));
    await untilObject(f0.provider, ref, key, (copy) => JSON.stringify(copy.spec) === JSON.stringify(edited.spec));
  }
});
