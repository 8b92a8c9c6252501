import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Long enough for a real API server on a busy two-core machine; tests wait on conditions, never on time. */
const E2E_TIMEOUT_MS = 180_000;

/** What must hold on the oldest API server and on mixed pairs too: KBIND_E2E_SUITE=main. */
const MAIN_SCENARIOS = ['setup', 'sync', 'schema', 'unbind'];
const e2eFiles =
  process.env['KBIND_E2E_SUITE'] === 'main'
    ? MAIN_SCENARIOS.map((name) => `test/e2e/${name}.test.ts`)
    : ['test/e2e/**/*.test.ts'];

/** One more than cores: many tests wait for timers and processes, and vitest's default is one fewer. */
const WORKERS = availableParallelism() + 1;

/**
 * Where servers and processes start under load, one more try tells a slow machine from a wrong program; the reporter says
 * which tests needed it. Unit tests get none.
 */
const RETRIES = process.env['CI'] === undefined ? 0 : 1;

/**
 * Every file starts servers of its own, takes back what it set in the environment, and loads the project's modules anew. A
 * process for each would load the packages 150 times: a third of the work of the whole run.
 */
const ISOLATE = false;

/**
 * They wait for processes most of their time: started last, a whole run waits for them alone. cli/two-hundred takes as long, but
 * computes: beside all the processes of these, its clusters would not answer in the nine seconds that it gives them.
 */
const LONG = ['cli/kbind-fleet', 'local/quickstart', 'local/start', 'local/bundles'];

/** A fresh checkout remembers no durations, and vitest goes by the size of files then. */
class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification): boolean =>
      LONG.some((name) => moduleId.endsWith(`/integration/${name}.test.ts`));
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  test: {
    maxWorkers: WORKERS,
    sequence: { sequencer: LongFilesFirst },
    projects: [
      { test: { name: 'unit', include: ['test/unit/**/*.test.ts'], isolate: ISOLATE, testTimeout: 30_000 } },
      {
        test: {
          name: 'contract',
          include: ['test/contract/**/*.test.ts'],
          isolate: ISOLATE,
          retry: RETRIES,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts', 'test/invariants/**/*.test.ts'],
          isolate: ISOLATE,
          retry: RETRIES,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      { test: { name: 'stack', include: ['test/stack/**/*.test.ts'] } },
      {
        test: {
          name: 'e2e',
          include: e2eFiles,
          retry: RETRIES,
          testTimeout: E2E_TIMEOUT_MS,
          hookTimeout: E2E_TIMEOUT_MS,
          // They mostly wait: for 8 s of grace, for refreshes, for finalizers. More than two pairs of servers starve each other.
          maxWorkers: 2,
        },
      },
    ],
  },
});
