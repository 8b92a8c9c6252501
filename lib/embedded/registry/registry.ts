import { tableName, type Resource, type Version } from '../api/resource.ts';

/** Every resource that a cluster serves at the moment. */
export class Registry {
  readonly #resources = new Map<string, Resource>();
  #generation = 0;

  /** Changes whenever the set of resources does; caches of documents depend on it. */
  get generation(): number {
    return this.#generation;
  }

  register(resource: Resource): void {
    this.#resources.set(tableName(resource), resource);
    this.#generation += 1;
  }

  unregister(resource: { group: string; plural: string }): void {
    if (this.#resources.delete(tableName(resource))) this.#generation += 1;
  }

  get(group: string, plural: string): Resource | undefined {
    return this.#resources.get(tableName({ group, plural }));
  }

  /** The resource and its version that a URL names. */
  find(group: string, version: string, plural: string): { resource: Resource; version: Version } | undefined {
    const resource = this.get(group, plural);
    const found = resource?.versions.find((each) => each.name === version);
    return resource && found ? { resource, version: found } : undefined;
  }

  byKind(group: string, kind: string): Resource | undefined {
    return this.all().find((resource) => resource.group === group && resource.kind === kind);
  }

  all(): Resource[] {
    return [...this.#resources.values()];
  }
}
