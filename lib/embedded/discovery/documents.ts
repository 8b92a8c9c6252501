import type { RequestInfo } from '../http/info.ts';
import type { Registry } from '../registry/registry.ts';
import { aggregated, apiGroup, groupList, legacyVersions, resourceList } from './discovery.ts';
import { openapiDocument, openapiIndex } from './openapi3.ts';
import { swagger } from './openapi2.ts';

/** A document that is no resource: discovery, schemas, health. */
export interface Found {
  readonly body: unknown;
  readonly contentType?: string;
}

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const VERSION = {
  major: '1',
  minor: '37',
  gitVersion: 'v1.37.0-embedded',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: '',
  compiler: '',
  platform: 'embedded',
};

const ROOT_PATHS = [
  '/api',
  '/api/v1',
  '/apis',
  '/healthz',
  '/livez',
  '/openapi/v2',
  '/openapi/v3',
  '/readyz',
  '/version',
];

/** The document at a path, or undefined. */
export function documentAt(info: RequestInfo, registry: Registry, accept: string, host: string): Found | undefined {
  const { path } = info;
  if (/^\/(healthz|livez|readyz)(\/|$)/.test(path)) return { body: 'ok' };
  if (path === '/version' || path === '/version/') return { body: VERSION };
  if (path === '/') return { body: { paths: ROOT_PATHS } };
  if (path.startsWith('/openapi/')) return openapi(path, registry, accept);
  return discovery(path, registry, accept, host);
}

function discovery(path: string, registry: Registry, accept: string, host: string): Found | undefined {
  const parts = path.split('/').filter(Boolean);
  const [root, first, second] = parts;
  const wantsAggregated = accept.replaceAll(' ', '').includes(AGGREGATED);
  if (root === 'api') {
    if (parts.length === 1)
      return wantsAggregated
        ? { body: aggregated(registry, true), contentType: AGGREGATED }
        : { body: legacyVersions(host) };
    return parts.length === 2 && first === 'v1' ? wrap(resourceList(registry, '', 'v1')) : undefined;
  }
  if (root !== 'apis') return undefined;
  if (parts.length === 1)
    return wantsAggregated
      ? { body: aggregated(registry, false), contentType: AGGREGATED }
      : { body: groupList(registry) };
  if (parts.length === 2) return wrap(apiGroup(registry, first ?? ''));
  return parts.length === 3 ? wrap(resourceList(registry, first ?? '', second ?? '')) : undefined;
}

const wrap = (body: object | undefined): Found | undefined => body && { body };

function openapi(path: string, registry: Registry, accept: string): Found | undefined {
  if (path === '/openapi/v2') return swagger(registry, accept);
  if (path === '/openapi/v3' || path === '/openapi/v3/')
    return { body: openapiIndex(registry), contentType: 'application/json' };
  const document = openapiDocument(registry, path.slice('/openapi/v3/'.length));
  return document && { body: document, contentType: 'application/json' };
}
