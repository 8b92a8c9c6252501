import { ageMs, instant, type Clock, type Instant } from '../model/clock.ts';
import type { KubeReads } from './types.ts';

/** Characters of documents that a container keeps of one server; parsed, they take about six times that. */
const MAX_CHARACTERS = 12_000_000;
/** `/openapi/v2` has no hash: it is asked for again by every 30-second pass, but only once by what happens at the same time. */
const UNHASHED_MS = 20_000;

interface Entry {
  readonly document: unknown;
  readonly characters: number;
  readonly readAt: Instant;
}

type GetPath = KubeReads['getPath'];

/** True for documents whose address names their contents. */
const isHashed = (path: string): boolean => path.startsWith('/openapi/v3/') && path.includes('?hash=');

/**
 * Keeps OpenAPI documents of one server, the ones used last. A document whose address has a hash never changes, so a pass in
 * which nothing changed costs the index alone.
 */
export function cacheDocuments(getPath: GetPath, clock: Clock): GetPath {
  const entries = new Map<string, Entry>();
  const fresh = (path: string): Entry | undefined => {
    const entry = entries.get(path);
    return entry !== undefined && (isHashed(path) || ageMs(clock, entry.readAt) < UNHASHED_MS) ? entry : undefined;
  };
  return async (path, options) => {
    if (!isHashed(path) && path !== '/openapi/v2') return getPath(path, options);
    const known = fresh(path);
    if (known !== undefined) {
      keep(entries, path, known);
      return known.document;
    }
    const readAt = instant(clock);
    const document = await getPath(path, options);
    keep(entries, path, { document, characters: JSON.stringify(document).length, readAt });
    return document;
  };
}

/** The latest goes to the end; what stands first goes when there is too much. A document that is too large is not kept. */
function keep(entries: Map<string, Entry>, path: string, entry: Entry): void {
  entries.delete(path);
  entries.set(path, entry);
  let total = [...entries.values()].reduce((sum, { characters }) => sum + characters, 0);
  for (const [oldest, { characters }] of entries) {
    if (total <= MAX_CHARACTERS) return;
    entries.delete(oldest);
    total -= characters;
  }
}
