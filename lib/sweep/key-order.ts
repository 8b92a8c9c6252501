import { keyText, type ObjectKey } from '../model/api.ts';

/**
 * The order in which an API server lists: bytes of `namespace/name`, so that `a-b/x` comes before `a/x`.
 * Negative, zero or positive, like any comparison.
 */
export function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** The text by which keys are ordered. */
export const orderText = (key: ObjectKey): string => keyText(key);
