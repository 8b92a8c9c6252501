import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Adds up what .ci/run did: `node scripts/sum-tests.ts STEPS_FILE`, whose lines are outcome, name of the test results or
 * `-`, title. A step without tests counts as one. Prints `N passed, N failed` and exits 1 unless everything passed.
 */
interface VitestResult {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly { readonly status: string; readonly assertionResults: readonly unknown[] }[];
}

interface Sum {
  readonly passed: number;
  readonly failed: number;
}

const folder = join(import.meta.dirname, '..', '.build', 'test-results');

function resultOf(outcome: string, name: string): Sum {
  const failedStep = outcome === 'passed' ? 0 : 1;
  const path = join(folder, `${name}.json`);
  if (name === '-') return { passed: 1 - failedStep, failed: failedStep };
  if (!existsSync(path)) return { passed: 0, failed: 1 };
  const result = JSON.parse(readFileSync(path, 'utf8')) as VitestResult;
  // A file that cannot even be loaded has no tests to count: it is one failure.
  const unloaded = result.testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
  ).length;
  const failed = result.numFailedTests + unloaded;
  return { passed: result.numPassedTests, failed: Math.max(failed, failedStep) };
}

const lines = readFileSync(process.argv[2] ?? '', 'utf8')
  .trimEnd()
  .split('\n');
let passed = 0;
let failed = 0;
for (const line of lines) {
  const [outcome = '', name = '-', title = ''] = line.split('\t');
  const sum = resultOf(outcome, name);
  passed += sum.passed;
  failed += sum.failed;
  console.log(`${title}: ${sum.passed} passed, ${sum.failed} failed`);
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
