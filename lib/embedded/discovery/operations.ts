import type { Resource, Version } from '../api/resource.ts';
import type { Obj } from '../json/json.ts';

const FIELD_VALIDATION = { name: 'fieldValidation', in: 'query', schema: { type: 'string', uniqueItems: true } };
const DRY_RUN = { name: 'dryRun', in: 'query', schema: { type: 'string', uniqueItems: true } };
const FIELD_MANAGER = { name: 'fieldManager', in: 'query', schema: { type: 'string', uniqueItems: true } };
const FORCE = { name: 'force', in: 'query', schema: { type: 'boolean', uniqueItems: true } };
const PATCHES = ['application/apply-patch+yaml', 'application/json-patch+json', 'application/merge-patch+json'];

/** The paths of one resource, as far as clients look at them: which kind they serve, and which parameters they take. */
export function operationsOf(resource: Resource, version: Version, reference: string): Obj {
  const root = resource.group ? `/apis/${resource.group}/${version.name}` : `/api/${version.name}`;
  const base = resource.namespaced ? `${root}/namespaces/{namespace}/${resource.plural}` : `${root}/${resource.plural}`;
  const operation = (action: string, parameters: Obj[], more: Obj = {}): Obj => ({
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group: resource.group, version: version.name, kind: resource.kind },
    parameters,
    responses: { 200: { description: 'OK', content: { 'application/json': { schema: { $ref: reference } } } } },
    ...more,
  });
  const body = { content: { '*/*': { schema: { $ref: reference } } }, required: true };
  const writes = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];
  const patchBody = {
    content: Object.fromEntries(PATCHES.map((type) => [type, { schema: { type: 'object' } }])),
    required: true,
  };
  return {
    [base]: {
      get: operation('list', []),
      post: operation('post', writes, { requestBody: body }),
      delete: operation('deletecollection', [DRY_RUN]),
    },
    [`${base}/{name}`]: {
      get: operation('get', []),
      put: operation('put', writes, { requestBody: body }),
      patch: operation('patch', [...writes, FORCE], { requestBody: patchBody }),
      delete: operation('delete', [DRY_RUN]),
    },
    ...(version.status && {
      [`${base}/{name}/status`]: {
        get: operation('get', []),
        put: operation('put', writes, { requestBody: body }),
        patch: operation('patch', [...writes, FORCE], { requestBody: patchBody }),
      },
    }),
  };
}
