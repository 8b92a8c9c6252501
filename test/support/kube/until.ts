import { setTimeout as delay } from 'node:timers/promises';

const TIMEOUT_MS = 20_000;
const BETWEEN_MS = 20;

/** Waits until a condition holds; throws after twenty seconds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + TIMEOUT_MS;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error('the condition did not come to hold');
    await delay(BETWEEN_MS);
  }
}
