import { expect } from 'vitest';

/** Holds a count to its budget; where it is over, the failure shows what was counted. */
export function atMost(budget: number, count: number, counted: unknown): void {
  expect(count > budget ? { count, counted } : 'within its budget').toEqual('within its budget');
}
