import { notAcceptable } from '../api/status.ts';

/** How an answer is to be shown. */
export interface Representation {
  readonly format: 'json' | 'yaml';
  /** Set where the client asked for another kind in place of the object. */
  readonly as?: 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList';
}

const ACCEPTED = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'];
const AS = new Set(['Table', 'PartialObjectMetadata', 'PartialObjectMetadataList']);

interface MediaType {
  readonly type: string;
  readonly params: Record<string, string>;
}

function parseMediaType(text: string): MediaType {
  const [type = '', ...rest] = text.split(';').map((part) => part.trim());
  const params = Object.fromEntries(rest.map((part) => part.split('=', 2) as [string, string]));
  return { type: type.toLowerCase(), params };
}

/** Chooses the first representation of an Accept header that this server knows. */
export function negotiate(accept: string | undefined, streaming = false): Representation {
  for (const text of (accept?.trim() || '*/*').split(',')) {
    const { type, params } = parseMediaType(text);
    const found = representation(type, params);
    if (found && !(streaming && found.format === 'yaml')) return found;
  }
  throw notAcceptable(streaming ? ['application/json'] : ACCEPTED);
}

function representation(type: string, params: Record<string, string>): Representation | undefined {
  const format = formatOf(type);
  if (!format) return undefined;
  const as = params['as'];
  if (!as) return { format };
  if (!AS.has(as) || params['g'] !== 'meta.k8s.io' || params['v'] !== 'v1') return undefined;
  return { format, as: as as NonNullable<Representation['as']> };
}

function formatOf(type: string): 'json' | 'yaml' | undefined {
  if (type === 'application/json' || type === '*/*' || type === 'application/*') return 'json';
  return type === 'application/yaml' ? 'yaml' : undefined;
}
