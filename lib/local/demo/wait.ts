import { setTimeout as delay } from 'node:timers/promises';

/** How long the demonstration waits for one thing, ms. */
const PATIENCE_MS = 60_000;
const LOOK_MS = 100;

/** Looks until there is an answer. Throws an error that says what never came. */
export async function waitFor<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const seen = await look();
    if (seen !== undefined) return seen;
    if (performance.now() > deadline) throw new Error(`The demonstration gave up: ${what} did not come in a minute`);
    await delay(LOOK_MS);
  }
}
