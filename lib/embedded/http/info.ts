/** What a request is about, read from its method and URL as kube-apiserver does. */
export interface RequestInfo {
  readonly path: string;
  readonly method: string;
  readonly isResource: boolean;
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
}

const NAMED_VERBS: Record<string, string> = {
  GET: 'get',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
  POST: 'create',
  HEAD: 'get',
};
const LIST_VERBS: Record<string, string> = {
  GET: 'list',
  POST: 'create',
  DELETE: 'deletecollection',
  PUT: 'update',
  PATCH: 'patch',
  HEAD: 'list',
};
const NAMESPACE_SUBRESOURCES = new Set(['status', 'finalize']);

/** Reads a request line. */
export function readRequestInfo(method: string, path: string, query: URLSearchParams): RequestInfo {
  const parts = path.split('/').filter(Boolean).map(decodeURIComponent);
  const other = {
    path,
    method,
    isResource: false,
    verb: method.toLowerCase(),
    group: '',
    version: '',
    plural: '',
    namespace: '',
    name: '',
    subresource: '',
  };
  const [root, ...rest] = parts;
  if (root === 'api' && rest.length >= 2) return resource(other, ['', ...rest], query);
  if (root === 'apis' && rest.length >= 3) return resource(other, rest, query);
  return other;
}

function resource(
  base: RequestInfo,
  [group = '', version = '', ...parts]: string[],
  query: URLSearchParams,
): RequestInfo {
  let namespace = '';
  let rest = parts;
  if (parts[0] === 'namespaces' && parts.length > 1) {
    namespace = parts[1] ?? '';
    if (parts.length > 2 && !NAMESPACE_SUBRESOURCES.has(parts[2] ?? '')) rest = parts.slice(2);
  }
  const [plural = '', name = '', subresource = ''] = rest;
  const verb = verbOf(base.method, name, query);
  return {
    ...base,
    isResource: true,
    verb,
    group,
    version,
    plural,
    namespace,
    name,
    subresource: [subresource, ...rest.slice(3)].filter(Boolean).join('/'),
  };
}

function verbOf(method: string, name: string, query: URLSearchParams): string {
  if (name) return NAMED_VERBS[method] ?? method.toLowerCase();
  if (method === 'GET' && ['true', '1'].includes(query.get('watch') ?? '')) return 'watch';
  return LIST_VERBS[method] ?? method.toLowerCase();
}
