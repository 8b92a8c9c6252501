import { TooLarge } from '../../kube/body.ts';
import type { KubeClient, ListOptions, ListPage } from '../../kube/types.ts';
import type { KubeObject, ResourceRef } from '../../model/api.ts';
import { isError, KbindError } from '../../model/errors.ts';

/** Items of the first page: Secrets may be a mebibyte each. */
const FIRST_LIMIT = 50;
const MAX_LIMIT = 500;
/** Bytes that the next page is to have. */
const PAGE_BYTES = 8 * 1024 * 1024;
/** How often a list starts over whose snapshot is gone. */
const MAX_STARTS = 4;

/** Items of the next page, by the size of those of the last one. */
function nextLimit({ items, bytes }: ListPage<KubeObject>): number {
  if (items.length === 0) return FIRST_LIMIT;
  return Math.max(1, Math.min(MAX_LIMIT, Math.floor((PAGE_BYTES * items.length) / Math.max(1, bytes))));
}

/**
 * A complete and consistent list, each object reduced as it comes, so that one page of contents is in memory and no more.
 * All pages of one snapshot or nothing: copies are deleted on the strength of what is not in it. A snapshot that is gone
 * (410) starts over; nothing is kept of what was read of it.
 * @throws KbindError `expired` when it is gone again and again, and whatever a page throws.
 */
export async function everyPage<T>(
  client: KubeClient,
  ref: ResourceRef,
  options: ListOptions,
  reduce: (object: KubeObject) => T,
): Promise<T[]> {
  for (let start = 1; ; start += 1) {
    try {
      return await allPages(client, ref, options, reduce);
    } catch (error) {
      if (!isError(error, 'expired') || start === MAX_STARTS) throw error;
    }
  }
}

async function allPages<T>(
  client: KubeClient,
  ref: ResourceRef,
  options: ListOptions,
  reduce: (object: KubeObject) => T,
): Promise<T[]> {
  const reduced: T[] = [];
  let limit = FIRST_LIMIT;
  let token: string | undefined;
  do {
    const page: ListPage<KubeObject> = await fittingPage(client, ref, { ...options, limit, continue: token });
    for (const item of page.items) reduced.push(reduce(item));
    limit = nextLimit(page);
    if (page.continue !== undefined && page.continue === token) {
      throw new KbindError('unavailable', `list ${ref.resource}: the server repeats a page`);
    }
    token = page.continue;
  } while (token !== undefined);
  return reduced;
}

/** A page that is too large to be taken is asked for in parts. */
async function fittingPage(
  client: KubeClient,
  ref: ResourceRef,
  options: ListOptions & { readonly limit: number },
): Promise<ListPage<KubeObject>> {
  for (let { limit } = options; ; limit = Math.max(1, Math.floor(limit / 8))) {
    try {
      return await client.list(ref, { ...options, limit });
    } catch (error) {
      const tooLarge = isError(error, 'invalid') && error.cause instanceof TooLarge;
      if (!tooLarge || limit === 1) throw error;
    }
  }
}
