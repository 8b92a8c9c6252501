import { expect } from 'vitest';

/** Holds a count to its budget; where it is over, the failure shows what was counted. */
export function atMost(budget: number, count: number, counted: unknown): void {
  const found = count > budget ? `${count}, over ${budget}: ${JSON.stringify(counted)}` : 'within its budget';
  expect(found).toBe('within its budget');
}
