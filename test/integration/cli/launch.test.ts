import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { binaryFolder, buildCli } from '../../support/cli/run.ts';

/** What Node compiled of the program is kept beside it. */

let folder: string;
beforeAll(buildCli);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kbind-launch-'));
  for (const file of ['package.json', 'main.js', 'kbind-fleet.js']) {
    copyFileSync(join(binaryFolder, file), join(folder, file));
  }
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function help(): string {
  const { NODE_COMPILE_CACHE: _, ...env } = process.env;
  return execFileSync(process.execPath, [join(folder, 'kbind-fleet.js'), '--help'], { env, encoding: 'utf8' });
}

describe('kbind-fleet', () => {
  it('keeps what Node compiled of it beside itself, and says the same with it', () => {
    const first = help();
    expect(first).toContain('Usage: kbind-fleet');
    expect(readdirSync(join(folder, 'compiled'))).toHaveLength(1);
    expect(help()).toBe(first);
  });

  it('does without where nothing can be kept', () => {
    writeFileSync(join(folder, 'compiled'), '');
    expect(help()).toContain('Usage: kbind-fleet');
    expect(readFileSync(join(folder, 'compiled'), 'utf8')).toBe('');
  });
});
