import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Adds up the results that scripts/run-tests.ts left, prints `N passed, N failed`, and exits 1 unless all passed. */
interface VitestResult {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  /** False also when a file failed before any of its tests ran. */
  readonly success: boolean;
  readonly testResults: readonly { readonly status: string; readonly assertionResults: readonly unknown[] }[];
}

const folder = join(import.meta.dirname, '..', '.build', 'test-results');
let passed = 0;
let failed = 0;
for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
  const result = JSON.parse(readFileSync(join(folder, file), 'utf8')) as VitestResult;
  // A file that cannot even be loaded counts as one failure: it has no tests to count.
  const unloaded = result.testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
  ).length;
  const failures = result.numFailedTests + unloaded;
  passed += result.numPassedTests;
  failed += failures === 0 && !result.success ? 1 : failures;
  console.log(`${file.replace('.json', '')}: ${result.numPassedTests} passed, ${failures} failed`);
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
