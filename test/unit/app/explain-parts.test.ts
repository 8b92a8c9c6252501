import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { differences } from '../../../lib/app/differences.ts';
import { findLocalCells } from '../../../lib/app/endpoint-file.ts';
import { createReplayHandler } from '../../../lib/app/replay-handler.ts';
import { parseJson } from '../../../lib/kube/json.ts';
import { writeEndpointFile } from '../../../lib/local/endpoint-file.ts';
import type { KubeObject } from '../../../lib/model/api.ts';
import { MemoryCell } from '../../support/queue/dead-queues.ts';
import { engineWith, registryOf } from '../../support/queue/engine.ts';
import { letter } from '../../support/queue/letters.ts';
import { withTime } from '../../support/queue/events.ts';

const object = (extra: object): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Widget',
  ...extra,
  metadata: { name: 'a', uid: 'u', resourceVersion: '1', ...(extra as { metadata?: object }).metadata },
});

describe('differences', () => {
  it('are fields, deep in maps and lists, and nothing that the server keeps', () => {
    const before = object({ spec: { a: 1, list: [{ x: 1 }], gone: true }, metadata: { resourceVersion: '1' } });
    const after = object({
      spec: { a: 2, list: [{ x: 1 }, { x: 2 }], 'odd.key': {} },
      metadata: { resourceVersion: '2' },
    });
    expect(differences(before, after)).toEqual([
      { path: 'spec.a', before: '1', after: '2' },
      { path: 'spec.gone', before: 'true', after: undefined },
      { path: 'spec.list[1].x', before: undefined, after: '2' },
      { path: 'spec["odd.key"]', before: undefined, after: '{}' },
    ]);
  });

  it('keep the digits of numbers', () => {
    const of = (text: string): KubeObject => object({ spec: parseJson(`{"n":${text}}`) as object });
    expect(differences(of('12345678901234567890'), of('12345678901234567891'))).toEqual([
      { path: 'spec.n', before: '12345678901234567890', after: '12345678901234567891' },
    ]);
  });

  it('never show what a Secret holds, its last kubectl apply included', () => {
    const secret = (value: string): KubeObject =>
      object({
        kind: 'Secret',
        data: { token: value },
        metadata: { annotations: { 'kubectl.kubernetes.io/last-applied-configuration': value } },
      });
    const shown = differences(secret('b2xk'), secret('bmV3'));
    expect(shown.map(({ before, after }) => [before, after])).toEqual([
      ['•••', '•••'],
      ['•••', '•••'],
    ]);
    expect(JSON.stringify(differences(undefined, secret('bmV3')))).not.toContain('bmV3');
  });
});

describe('a running cell', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cells-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  it('is found by its fleet while it runs, and not after', async () => {
    const url = 'http://127.0.0.1:4000/000000000000/q';
    const facts = { url, arn: 'arn:aws:sqs:eu-central-1:0:q', name: 'q' };
    const queues = { control: facts, instances: facts, work: facts, deadLetters: facts, workDead: facts };
    const remove = await writeEndpointFile({ endpoint: 'http://127.0.0.1:4000', queues }, 'some/fleet', folder);
    await writeFile(join(folder, 'cell-1-1.json'), 'torn');
    expect(await findLocalCells('some/fleet', folder)).toMatchObject([{ region: 'eu-central-1', pid: process.pid }]);
    expect(await findLocalCells('another', folder)).toEqual([]);
    await remove();
    expect(await findLocalCells(undefined, folder)).toEqual([]);
    expect(await findLocalCells(undefined, join(folder, 'none'))).toEqual([]);
  });
});

describe('the replay function', () => {
  const cell = new MemoryCell();
  cell.bury('deadLetters', letter('a'));
  const handler = createReplayHandler(engineWith({ registry: registryOf({ found: 'removed' }) }), cell);
  const time = withTime(60_000);

  it.each([
    ['nothing', {}, 'action'],
    ['an unknown action', { action: 'dance' }, 'action'],
    ['an unknown field', { action: 'list', fliter: {} }, 'unknown field "fliter"'],
    ['an unknown filter', { action: 'list', filter: { nmae: 'x' } }, 'unknown field "nmae"'],
    ['too many', { action: 'replay', max: 1_000_000 }, 'at most 10000'],
    ['a drop of everything', { action: 'drop', settledOnly: false }, 'needs a filter'],
  ])('refuses %s', async (_, event, words) => {
    await expect(handler(event, time)).rejects.toThrow(words);
  });

  it('lists, tries and drops', async () => {
    expect(await handler({ action: 'list' }, time)).toMatchObject({ entries: 1, groups: [{ error: 'invalid' }] });
    expect(await handler({ action: 'dry-run' }, time)).toMatchObject({ entries: [{ prospect: 'cluster-removed' }] });
    expect(await handler({ action: 'drop' }, time)).toEqual({ action: 'drop', matched: 1, dropped: 1, kept: 0 });
  });
});
