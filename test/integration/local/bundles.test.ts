import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLocalCell } from '../../../lib/local/cell.ts';
import type { LambdaHandler } from '../../../lib/local/lambda/invoke.ts';
import { isAuthPlugin } from '../../../scripts/auth-plugins.ts';
import { readZip } from '../../support/local/read-zip.ts';
import { bindAndOrder, changeAndDelete, startPlatform } from '../../support/local/platform.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const FUNCTIONS = ['control', 'ingest', 'instances', 'replay', 'tick', 'work'];
let out = '';

beforeAll(() => {
  out = mkdtempSync(join(tmpdir(), 'kbind-build-'));
  execFileSync(process.execPath, [join(root, 'scripts', 'build.ts'), out], { cwd: root, stdio: 'pipe' });
});
afterAll(() => rmSync(out, { recursive: true, force: true }));

async function bundledHandler(name: string): Promise<LambdaHandler> {
  const module: unknown = await import(pathToFileURL(join(out, 'functions', name, `${name}.mjs`)).href);
  return (module as { handler: LambdaHandler }).handler;
}

interface Metafile {
  readonly inputs: Readonly<Record<string, unknown>>;
}

describe('what is deployed', () => {
  it('is one file for each function, zipped as Lambda wants it, source maps apart', () => {
    expect(readdirSync(join(out, 'functions')).toSorted()).toEqual(
      FUNCTIONS.flatMap((name) => [name, `${name}.zip`]).toSorted(),
    );
    for (const name of FUNCTIONS) {
      const archive = readFileSync(join(out, 'functions', `${name}.zip`));
      const code = readFileSync(join(out, 'functions', name, `${name}.mjs`));
      expect(readZip(archive)).toEqual([{ name: `functions/${name}.mjs`, data: code }]);
    }
    expect(readdirSync(join(out, 'maps'))).toEqual(
      expect.arrayContaining(FUNCTIONS.flatMap((name) => [`${name}.mjs.map`, `${name}.meta.json`])),
    );
  });

  it.each(FUNCTIONS)('holds no auth plugin, no emulator and no API server in %s', (name) => {
    const { inputs } = JSON.parse(readFileSync(join(out, 'maps', `${name}.meta.json`), 'utf8')) as Metafile;
    const files = Object.keys(inputs);
    expect(files.filter(isAuthPlugin)).toEqual([]);
    expect(files.filter((file) => /lib\/(local|embedded|cli)\/|fauxqs|envtest/.test(file))).toEqual([]);
    const code = readFileSync(join(out, 'functions', name, `${name}.mjs`), 'utf8');
    expect(code).not.toContain('No command was specified for exec authProvider');
  });

  it.each(['tick', 'ingest'])('carries nothing that reconciles or sweeps in %s, which only sends keys', (name) => {
    const { inputs } = JSON.parse(readFileSync(join(out, 'maps', `${name}.meta.json`), 'utf8')) as Metafile;
    expect(Object.keys(inputs).filter((file) => /^lib\/(reconcile|sweep|schema|replay)\//.test(file))).toEqual([]);
  });

  it.each(FUNCTIONS)('keeps %s under 1.5 MB', (name) => {
    expect(statSync(join(out, 'functions', name, `${name}.mjs`)).size).toBeLessThan(1_500_000);
  });

  it('starts without the HTTP client that is inside Node', () => {
    const files = FUNCTIONS.map((name) => pathToFileURL(join(out, 'functions', name, `${name}.mjs`)).href);
    const script = `for (const file of ${JSON.stringify(files)}) await import(file);
      console.log(JSON.stringify(process.moduleLoadList));`;
    const loaded = JSON.parse(
      execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' }),
    ) as string[];
    expect(loaded).toContain('NativeModule http');
    expect(loaded.filter((module) => module.includes('undici'))).toEqual([]);
  });

  it('works: the bundles sync the demonstration from beginning to end', async () => {
    const platform = await startPlatform();
    const handlers = Object.fromEntries(
      await Promise.all(FUNCTIONS.map(async (name) => [name, await bundledHandler(name)] as const)),
    );
    const cell = await startLocalCell({ fleetDir: platform.folder.fleet, allowLoopback: true, handlers });
    try {
      await bindAndOrder(platform.stage);
      await changeAndDelete(platform.stage);
      expect(platform.told).toHaveLength(7);
      expect(cell.bodies('deadLetters')).toEqual([]);
    } finally {
      await cell.stop();
      await platform.stop();
    }
  });
});
