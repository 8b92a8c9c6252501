import type { Resource, Schema, Version } from '../api/resource.ts';
import { isObject, type Obj } from '../json/json.ts';
import type { Registry } from '../registry/registry.ts';
import { OBJECT_META } from '../schema/meta.ts';
import { groupsOf } from './discovery.ts';
import { operationsOf } from './operations.ts';

export const META_NAME = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';

/** `/openapi/v3`: where the document of each group version is. */
export function openapiIndex(registry: Registry): Obj {
  const names = [
    'api/v1',
    ...groupsOf(registry).flatMap(([group, versions]) => versions.map((version) => `apis/${group}/${version}`)),
  ];
  const paths = names.map((name) => [name, { serverRelativeURL: `/openapi/v3/${name}?hash=${registry.generation}` }]);
  return { paths: Object.fromEntries(paths) as Obj };
}

/** The OpenAPI document of one group version, or undefined. */
export function openapiDocument(registry: Registry, name: string): Obj | undefined {
  const [root, ...rest] = name.split('/');
  const [group, version] = root === 'api' ? ['', rest[0] ?? ''] : [rest[0] ?? '', rest[1] ?? ''];
  const served = registry.all().flatMap((resource) => {
    const at = resource.group === group ? resource.versions.find((each) => each.name === version) : undefined;
    return at ? [{ resource, at }] : [];
  });
  if (served.length === 0) return undefined;
  const definitions = new Definitions('#/components/schemas/');
  const paths: Obj = {};
  for (const { resource, at } of served)
    Object.assign(paths, operationsOf(resource, at, definitions.add(resource, at)));
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'v1.37.0-embedded' },
    paths,
    components: { schemas: definitions.all },
  };
}

/** Names a kind's definition as Kubernetes does: the group's labels turned around, the version and the kind. */
export function definitionName(resource: Resource, version: string): string {
  if (!resource.custom) return `io.k8s.api.${(resource.group || 'core').split('.')[0]}.${version}.${resource.kind}`;
  return [...resource.group.split('.').reverse(), version, resource.kind].join('.');
}

/** Definitions of a document; a schema that contains itself becomes a definition of its own. */
export class Definitions {
  readonly all: Obj = {};
  readonly #prefix: string;
  readonly #named = new Map<Schema, string>();

  constructor(prefix: string) {
    this.#prefix = prefix;
    this.#define(META_NAME, OBJECT_META);
  }

  /** Adds a kind and its list; returns the reference to it. */
  add(resource: Resource, version: Version): string {
    const name = definitionName(resource, version.name);
    const gvk = [{ group: resource.group, kind: resource.kind, version: version.name }];
    this.#define(name, version.schema);
    Object.assign(this.all[name] as Obj, { 'x-kubernetes-group-version-kind': gvk });
    this.all[`${name}List`] = {
      type: 'object',
      required: ['items'],
      properties: {
        apiVersion: { type: 'string' },
        kind: { type: 'string' },
        metadata: { type: 'object' },
        items: { type: 'array', items: this.#ref(name) },
      },
      'x-kubernetes-group-version-kind': [{ ...gvk[0], kind: resource.listKind }],
    };
    return `${this.#prefix}${name}`;
  }

  #ref(name: string): Obj {
    return { $ref: `${this.#prefix}${name}` };
  }

  #define(name: string, schema: Schema): void {
    this.#named.set(schema, name);
    this.all[name] = this.#print(schema, true, []);
  }

  #print(schema: Schema, isRoot: boolean, above: readonly Schema[]): Obj {
    const known = this.#named.get(schema);
    if (known && !isRoot) return this.#ref(known);
    if (above.includes(schema)) return { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    const below = [...above, schema];
    const result: Obj = {};
    for (const [keyword, value] of Object.entries(schema)) result[keyword] = this.#keyword(keyword, value, below);
    return result;
  }

  #keyword(keyword: string, value: unknown, above: readonly Schema[]): unknown {
    const print = (schema: unknown): unknown =>
      isMeta(schema) ? { allOf: [this.#ref(META_NAME)], default: {} } : this.#print(schema as Schema, false, above);
    if (keyword === 'properties' && isObject(value))
      return Object.fromEntries(Object.entries(value).map(([key, schema]) => [key, print(schema)]));
    if ((keyword === 'items' || keyword === 'additionalProperties' || keyword === 'not') && isObject(value))
      return print(value);
    if (['allOf', 'anyOf', 'oneOf'].includes(keyword) && Array.isArray(value)) return value.map(print);
    return value;
  }
}

const isMeta = (schema: unknown): boolean => isObject(schema) && schema['properties'] === OBJECT_META.properties;
