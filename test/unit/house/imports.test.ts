import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { forbiddenEdges, importEdges, MAY_IMPORT } from './layering.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const folders = readdirSync(join(root, 'lib'), { withFileTypes: true }).filter((entry) => entry.isDirectory());

describe('imports go one way', () => {
  it('knows every folder of lib', () => {
    expect(folders.map(({ name }) => name).toSorted()).toEqual(Object.keys(MAY_IMPORT).toSorted());
  });

  it.each(Object.keys(MAY_IMPORT))('holds for lib/%s', (folder) => {
    expect(forbiddenEdges(importEdges(root, join('lib', folder)))).toEqual([]);
  });

  it('holds for functions', () => {
    expect(forbiddenEdges(importEdges(root, 'functions'))).toEqual([]);
  });

  it('sees the edges at all', () => {
    const edges = importEdges(root, 'lib');
    expect(edges.length).toBeGreaterThan(100);
    expect(edges).toContainEqual({ from: 'lib/kube/types.ts', to: 'lib/model/api.ts' });
  });

  it.each([
    ['lib/model/api.ts', 'lib/kube/types.ts'],
    ['lib/kube/client.ts', 'lib/queue/sqs.ts'],
    ['lib/reconcile/world.ts', 'lib/queue/sqs.ts'],
    ['lib/app/compose.ts', 'lib/local/cell.ts'],
    ['lib/embedded/server.ts', 'lib/model/api.ts'],
    ['functions/control.ts', 'lib/kube/client.ts'],
    ['lib/kube/client.ts', 'test/support/x.ts'],
  ])('refuses %s → %s', (from, to) => {
    expect(forbiddenEdges([{ from, to }])).toEqual([`${from} imports ${to}`]);
  });
});
