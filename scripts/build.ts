import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { build, type BuildResult, type Plugin } from 'esbuild';
import { isAuthPlugin, withoutAuthPlugins } from './auth-plugins.ts';
import { requiredBuiltins } from './builtins.ts';
import { slimBundle } from './slim-bundle.ts';
import { zip } from './zip.ts';

/**
 * Bundles what is shipped, into .build or the folder that is given: one ESM file per function, zipped as serverless.yml
 * expects it, and the forwarder. Source maps stand apart in maps/, with the report of what went in.
 */
const root = join(import.meta.dirname, '..');
const out = process.argv[2] ?? join(root, '.build');
const CLI_ENTRY = join(root, 'lib', 'cli', 'main.ts');
const FORWARDER_ENTRY = join(root, 'lib', 'app', 'forwarder-main.ts');

/** Bundled CommonJS packages call `require` for Node's own modules, which ESM does not have. */
const BANNER =
  "import{createRequire as __kbindRequire}from'node:module';const require=__kbindRequire(import.meta.url);";

interface Bundle {
  readonly code: Uint8Array;
  readonly inputs: readonly string[];
}

async function bundle(entry: string, name: string, plugins: readonly Plugin[]): Promise<Bundle> {
  const result: BuildResult<{ write: false; metafile: true }> = await build({
    entryPoints: [entry],
    outfile: join(out, `${name}.mjs`),
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    // Packages that come as ES modules too are taken as such: only what is used of them goes in.
    mainFields: ['module', 'main'],
    minify: true,
    keepNames: true,
    legalComments: 'none',
    sourcemap: 'external',
    banner: { js: BANNER },
    // The AWS SDK is bundled as well: the runtime's own version changes under our feet.
    plugins: [requiredBuiltins, ...plugins],
    logLevel: 'warning',
  });
  await mkdir(join(out, 'maps'), { recursive: true });
  let code: Uint8Array | undefined;
  for (const file of result.outputFiles) {
    if (file.path.endsWith('.map')) await writeFile(join(out, 'maps', basename(file.path)), file.contents);
    else code = file.contents;
  }
  await writeFile(join(out, 'maps', `${name}.meta.json`), JSON.stringify(result.metafile));
  if (code === undefined) throw new Error(`esbuild made nothing of ${entry}`);
  const inputs = Object.keys(result.metafile.inputs);
  const refused = inputs.filter(isAuthPlugin);
  if (refused.length > 0) throw new Error(`${name} bundles what it must not: ${refused.join(', ')}`);
  return { code, inputs };
}

async function buildFunction(file: string): Promise<void> {
  const name = basename(file, '.ts');
  const { code } = await bundle(join(root, 'functions', file), name, [slimBundle]);
  const folder = join(out, 'functions');
  await mkdir(join(folder, name), { recursive: true });
  await writeFile(join(folder, name, `${name}.mjs`), code);
  const archive = zip([{ name: `functions/${name}.mjs`, data: code }]);
  await writeFile(join(folder, `${name}.zip`), archive);
  report(`function ${name}`, code.length, archive.length);
}

async function buildForwarder(): Promise<void> {
  const { code } = await bundle(FORWARDER_ENTRY, 'forwarder', [withoutAuthPlugins]);
  await mkdir(join(out, 'forwarder'), { recursive: true });
  await writeFile(join(out, 'forwarder', 'forwarder.mjs'), code);
  report('forwarder', code.length);
}

async function buildFunctions(): Promise<void> {
  const files = (await readdir(join(root, 'functions'))).filter((file) => file.endsWith('.ts'));
  if (files.length === 0) throw new Error('functions/ holds no handler');
  for (const file of files.toSorted()) await buildFunction(file);
}

/**
 * `kbind-fleet`, for Node itself: `.build` is no ES module scope of its own, so it gets one. What is started is small, and read
 * by the oldest Node that npm installs the package on.
 */
async function buildCli(): Promise<void> {
  const { code } = await bundle(CLI_ENTRY, 'kbind-fleet', [slimBundle, withoutAuthPlugins]);
  const launcher = await build({
    entryPoints: [join(root, 'lib', 'cli', 'launch.ts')],
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node20',
    format: 'esm',
  });
  const folder = join(out, 'cli');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }\n');
  await writeFile(join(folder, 'main.js'), code);
  await writeFile(join(folder, 'kbind-fleet.js'), launcher.outputFiles[0]?.contents ?? '', { mode: 0o755 });
  report('kbind-fleet', code.length);
}

function report(what: string, size: number, zipped?: number): void {
  const kilobytes = (bytes: number): string => `${Math.round(bytes / 1024)} KB`;
  console.log(`${what}: ${kilobytes(size)}${zipped === undefined ? '' : `, ${kilobytes(zipped)} zipped`}`);
}

const parts = ['functions', 'forwarder', 'cli'] as const;
/** One part only, if it is named after the folder. */
const wanted = process.argv[3] === undefined ? parts : parts.filter((part) => part === process.argv[3]);
for (const folder of [...wanted, 'maps']) await rm(join(out, folder), { recursive: true, force: true });
for (const part of wanted) {
  if (part === 'functions') await buildFunctions();
  else if (part === 'forwarder') await buildForwarder();
  else await buildCli();
}
