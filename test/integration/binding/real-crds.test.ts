import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseJson } from '../../../lib/kube/json.ts';
import { resources } from '../../../lib/model/api.ts';
import type { SentObject } from '../../../lib/kube/types.ts';
import { clusterKinds } from '../../support/apiserver/kinds.ts';
import { Fixture, widgets, widgetsCrd, version } from './fixture.ts';

/** Folder with crds/ of real projects; CI hands it over. */
const folder = process.env['KBIND_E2E_DATA'];
const files = folder === undefined ? [] : readdirSync(join(folder, 'crds'));

describe.each(clusterKinds())('schemas as a consumer installs them: $name', (kind) => {
  let fixture: Fixture;
  beforeAll(async () => {
    fixture = await Fixture.start(kind);
    await fixture.connect('demo');
  });
  afterAll(() => fixture.stop());

  async function install(manifest: SentObject): Promise<void> {
    const { name = '', annotations = {} } = manifest.metadata;
    await fixture.provider.hands.create(resources.crds, {
      ...manifest,
      metadata: { name, annotations, labels: { 'core.kbind.io/exported': 'true' } },
    });
    const binding = name.replaceAll('.', '-');
    await fixture.bind(binding, { apis: [name] });
    await fixture.untilReady(binding);
    fixture.writes.splice(0);
    await fixture.reconcileBinding(binding);
    expect(fixture.writes).toEqual([]);
  }

  test.runIf(files.length > 0).each(files)('%s is installed, and nothing is written twice', async (file) => {
    const manifest = parse(await readFile(join(folder ?? '', 'crds', file), 'utf8')) as SentObject;
    await install(manifest);
    const crd = await fixture.crd(manifest.metadata.name);
    const travelled = Object.keys(crd?.metadata.annotations ?? {}).filter((key) => !key.startsWith('core.kbind.io/'));
    expect(travelled.filter((key) => key !== 'api-approved.kubernetes.io')).toEqual([]);
  });

  test('selectable fields, CEL rules and defaults past 2^53', async () => {
    const spec = {
      type: 'object',
      properties: {
        size: { type: 'string' },
        quota: { type: 'integer', format: 'int64', default: parseJson('9007199254740993') },
      },
      'x-kubernetes-validations': [{ rule: "self.size != 'xxl'", message: 'too large' }],
    };
    const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
    const versions = [version('v1', { storage: true, schema, selectableFields: [{ jsonPath: '.spec.size' }] })];
    await install(widgetsCrd({ versions }));
    const made = await fixture.createWidget({ namespace: 'team-a', name: 'w' }, { spec: { size: 'large' } }, widgets);
    expect(JSON.stringify(made.spec)).toContain('9007199254740993');
  });
});
