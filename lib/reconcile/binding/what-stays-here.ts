import type { KubeObject } from '../../model/api.ts';
import { usableVersion } from '../../model/crd.ts';

/** What every object has, and what is synchronized. */
const TRAVELS = new Set(['apiVersion', 'kind', 'metadata', 'spec', 'status']);

/** How many fields a sentence names. */
const NAMED = 5;

interface VersionSchema {
  readonly openAPIV3Schema?: { readonly properties?: Readonly<Record<string, unknown>> };
}

/** A sentence for an API that has more than spec and status: only spec goes up (L34). Undefined for all others. */
export function whatStaysHere(crd: KubeObject): string | undefined {
  const schema = usableVersion(crd)?.['schema'] as VersionSchema | undefined;
  const fields = Object.keys(schema?.openAPIV3Schema?.properties ?? {})
    .filter((field) => !TRAVELS.has(field))
    .sort();
  if (fields.length === 0) return undefined;
  const more = fields.length > NAMED ? ` and ${fields.length - NAMED} more` : '';
  return `of ${crd.metadata.name} only spec goes up and status comes down: ${fields.slice(0, NAMED).join(', ')}${more} stay in this cluster`;
}
