import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import pc from 'picocolors';

/**
 * Runs vitest projects: `node scripts/run-tests.ts PROJECT… [--real] [vitest arguments]`. `--real`, which e2e implies,
 * refuses to run without real API servers. The result is left as JSON in .build/test-results for scripts/sum-tests.ts.
 */
const PROJECTS = ['unit', 'contract', 'integration', 'stack', 'e2e'];
const E2E_HINT = 'KUBEBUILDER_ASSETS=FOLDER_WITH_KUBE_APISERVER_AND_ETCD npm run e2e';

const given = process.argv.slice(2);
const projects = given.filter((argument) => PROJECTS.includes(argument));
const onRealServers = projects.includes('e2e') || given.includes('--real');
const passedOn = given.filter((argument) => !PROJECTS.includes(argument) && !['--', '--real'].includes(argument));

/** What meets no API server but the embedded one: `npm test` has run it. */
const EMBEDDED_ONLY = [
  'test/invariants/**',
  ...['cli', 'fleet', 'local', 'reference'].map((folder) => `test/integration/${folder}/**`),
];

/** Tests start many processes of the same code: what Node compiled for one serves the next. */
const COMPILED = { NODE_COMPILE_CACHE: join(import.meta.dirname, '..', '.local', 'compile-cache') };

if (onRealServers) requireRealServers();
const results = join(import.meta.dirname, '..', '.build', 'test-results');
mkdirSync(results, { recursive: true });
const name = process.env['TEST_RESULT_NAME'] ?? projects.join('-');
const run = spawnSync(
  'vitest',
  [
    'run',
    ...projects.flatMap((project) => ['--project', project]),
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${join(results, `${name}.json`)}`,
    ...(onRealServers ? EMBEDDED_ONLY.map((pattern) => `--exclude=${pattern}`) : []),
    ...passedOn,
  ],
  {
    stdio: 'inherit',
    shell: process.platform === 'win32',
    env: { ...COMPILED, ...process.env, ...(onRealServers ? { KBIND_TEST_SERVERS: 'real' } : {}) },
  },
);
if (!onRealServers && !projects.includes('stack')) {
  console.log(`${pc.yellow('Left out: e2e')}, the scenarios on real kube-apiservers. They run with\n  ${E2E_HINT}`);
}
process.exit(run.status ?? 1);

/** Real servers or an error: an e2e run that skips itself would look like one that passed. */
function requireRealServers(): void {
  for (const variable of ['KUBEBUILDER_ASSETS', 'KBIND_E2E_PROVIDER_ASSETS']) {
    const folder = process.env[variable];
    if (folder === undefined && variable !== 'KUBEBUILDER_ASSETS') continue;
    const missing = ['kube-apiserver', 'etcd'].filter((binary) => !existsSync(join(folder ?? '', binary)));
    if (folder !== undefined && folder !== '' && missing.length === 0) continue;
    const why =
      folder === undefined || folder === '' ? 'is not set' : `has no ${missing.join(' and no ')} in ${folder}`;
    console.error(pc.red(`This needs real API servers, and ${variable} ${why}. Run it as\n  ${E2E_HINT}`));
    process.exit(1);
  }
}
