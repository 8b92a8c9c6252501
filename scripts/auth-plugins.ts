import type { Plugin } from 'esbuild';

/**
 * The parts of @kubernetes/client-node that run commands, call clouds or read token files on behalf of a kubeconfig. No
 * function needs them (spec §9 refuses such kubeconfigs), so their source is in no bundle: a class that says so stands in.
 */
const PLUGIN_CLASSES: Readonly<Record<string, string>> = {
  exec_auth: 'ExecAuth',
  azure_auth: 'AzureAuth',
  gcp_auth: 'GoogleCloudPlatformAuth',
  oidc_auth: 'OpenIDConnectAuth',
  file_auth: 'FileAuth',
};

/** Whether a bundled input is the source of such a plugin. */
export const isAuthPlugin = (input: string): boolean =>
  /@kubernetes\/client-node\/.*(exec|azure|gcp|oidc|file)_auth\.[jt]s$/.test(input) ||
  /node_modules\/(openid-client|oauth4webapi|google-auth-library|@azure)\//.test(input);

/** Replaces the plugins by classes that never claim a user. */
export const withoutAuthPlugins: Plugin = {
  name: 'without-auth-plugins',
  setup(build) {
    build.onResolve({ filter: /^\.\/(exec|azure|gcp|oidc|file)_auth\.js$/ }, ({ path, importer }) =>
      importer.includes('@kubernetes/client-node') ? { path, namespace: 'without-auth-plugins' } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: 'without-auth-plugins' }, ({ path }) => {
      const name = PLUGIN_CLASSES[path.replace('./', '').replace('.js', '')] ?? '';
      return {
        contents: `export class ${name} {
          isAuthProvider() { return false; }
          applyAuthentication() { throw new Error('${name} is not part of this build'); }
        }`,
      };
    });
  },
};
