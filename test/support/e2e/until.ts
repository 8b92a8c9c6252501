/** How long a condition may take on a busy two-core machine before a test gives up, ms. */
const PATIENCE_MS = 60_000;
const POLL_MS = 50;

/** Looks until `look` answers something truthy and returns that; says at the end what it saw last. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | null | false> | T | undefined | null | false,
  options: { readonly timeoutMs?: number; readonly seen?: () => unknown } = {},
): Promise<T> {
  const deadline = Date.now() + (options.timeoutMs ?? PATIENCE_MS);
  let lastError: unknown;
  for (;;) {
    try {
      const seen = await look();
      if (seen) return seen;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    if (Date.now() > deadline) {
      const last = options.seen === undefined ? '' : `; last seen: ${JSON.stringify(await options.seen(), null, 1)}`;
      throw new Error(`gave up waiting until ${what}${last}`, { cause: lastError });
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Makes sure that something stays true for a while: the only way to see that nothing happens. */
export async function staysTrue(what: string, forMs: number, look: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + forMs;
  while (Date.now() < end) {
    if (!(await look())) throw new Error(`did not stay true: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS * 2));
  }
}
