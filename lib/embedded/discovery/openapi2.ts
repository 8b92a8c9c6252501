import type { Registry } from '../registry/registry.ts';
import { operationsOf } from './operations.ts';
import { Definitions } from './openapi3.ts';
import type { Obj } from '../json/json.ts';

/** `/openapi/v2` as JSON. */
export function swagger(registry: Registry, _accept: string): { body: Obj; contentType: string } {
  const definitions = new Definitions('#/definitions/');
  const paths: Obj = {};
  for (const resource of registry.all()) {
    for (const version of resource.versions)
      Object.assign(paths, operationsOf(resource, version, definitions.add(resource, version)));
  }
  return {
    body: {
      swagger: '2.0',
      info: { title: 'Kubernetes', version: 'v1.37.0-embedded' },
      paths,
      definitions: definitions.all,
    },
    contentType: 'application/json',
  };
}
