// Runs before every other script, under whatever Node the machine has (20 or newer), so it is plain JavaScript and
// imports nothing of ours. It makes a fresh clone need one command only: `npm ci` when what is installed is not what the
// lockfile says. It compares contents, not times, so a checkout that merely touches the lockfile installs nothing.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const OLDEST_NODE = 20;

/** The `packages` map of a lockfile, or undefined when it is missing or unreadable. */
function packagesOf(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).packages;
  } catch {
    return undefined;
  }
}

/** Why an installation is needed, or undefined. Packages for other platforms are optional and may be absent. */
function reasonToInstall() {
  const wanted = packagesOf(join(root, 'package-lock.json'));
  const installed = packagesOf(join(root, 'node_modules', '.package-lock.json'));
  if (wanted === undefined) return 'package-lock.json cannot be read';
  if (installed === undefined) return 'nothing is installed yet';
  for (const [path, entry] of Object.entries(wanted)) {
    if (path === '' || entry.link) continue;
    const present = installed[path];
    if (present === undefined && (entry.optional || entry.devOptional || entry.peer)) continue;
    if (present?.version !== entry.version) return `${path.replace(/^node_modules\//, '')} is not ${entry.version}`;
  }
  return undefined;
}

if (Number(process.versions.node.split('.')[0]) < OLDEST_NODE) {
  console.error(`This needs Node ${OLDEST_NODE} or newer to begin with; this is ${process.versions.node}.`);
  process.exit(1);
}
const reason = reasonToInstall();
if (reason !== undefined) {
  console.error(`Installing packages with \`npm ci\` first, because ${reason} (about half a minute)…`);
  const shell = process.platform === 'win32';
  const run = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: 'inherit',
    shell,
  });
  if (run.status !== 0) {
    console.error('`npm ci` failed; its own messages are above.');
    process.exit(run.status ?? 1);
  }
}
