import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import type { Plugin } from 'esbuild';

/**
 * What functions never reach in the packages that they bundle. Each left-out file becomes a module that throws when it is
 * called or loaded, so that a mistake here is loud; the built bundles are run against clusters by test/integration/local.
 */
const undici = dirname(createRequire(import.meta.url).resolve('undici/package.json'));

/** undici's own index builds fetch, WebSocket, caches and mocks. lib/kube uses a pool, its connector and `request`. */
const UNDICI = `
const Dispatcher = require('./lib/dispatcher/dispatcher');
Dispatcher.prototype.request = require('./lib/api/api-request');
module.exports = { Dispatcher, Pool: require('./lib/dispatcher/pool'), buildConnector: require('./lib/core/connect') };
`;

interface LeftOut {
  readonly files: RegExp;
  /** Its importer loads it at once and calls it only when needed. */
  readonly atCall?: boolean;
  readonly why: string;
}

const LEFT_OUT: readonly LeftOut[] = [
  { files: /undici\/lib\/dispatcher\/client-h2\.js$/, atCall: true, why: 'HTTP/2 is off (lib/kube/transport.ts)' },
  { files: /undici\/lib\/llhttp\/llhttp-wasm\.js$/, why: 'arm64 and x64 have SIMD' },
  { files: /undici\/lib\/web\/fetch\/(body|formdata)\.js$/, why: 'bodies are text' },
  { files: /undici\/lib\/web\/webidl\/index\.js$/, why: 'bodies are text' },
  { files: /node_modules\/bowser\//, why: 'tells browsers apart' },
];

export const slimBundle: Plugin = {
  name: 'slim-bundle',
  setup(build) {
    // undici's own switch, made for Node's core: without its second, experimental parser.
    build.initialOptions.define = { ...build.initialOptions.define, esbuildDetection: '1' };
    build.onResolve({ filter: /^undici$/ }, () => ({ path: join(undici, 'index.js'), namespace: 'slim-undici' }));
    build.onLoad({ filter: /.*/, namespace: 'slim-undici' }, () => ({ contents: UNDICI, resolveDir: undici }));
    for (const { files, why, atCall = false } of LEFT_OUT) {
      build.onLoad({ filter: files }, ({ path }) => {
        const refuse = `throw new Error(${JSON.stringify(`${basename(path)} is not part of this build: ${why}`)});`;
        return { contents: atCall ? `module.exports = () => { ${refuse} };` : refuse, loader: 'js' };
      });
    }
  },
};
