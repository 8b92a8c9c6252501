import { KbindError } from '../model/errors.ts';

/**
 * Levels of nesting that are compared, hashed and copied. kube-apiserver takes 10,000, which overflows what walks them;
 * nobody's own object has a tenth of this.
 */
export const MAX_DEPTH = 500;

/** The object is refused for what it is. */
export const tooDeep = (): KbindError =>
  new KbindError('invalid', `nested more than ${MAX_DEPTH} levels deep: such objects are not synchronized`);

/** @throws KbindError class `invalid` for a value that is nested deeper than {@link MAX_DEPTH} */
export function refuseDeep(value: unknown): void {
  const open: [unknown, number][] = [[value, 0]];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const [inside, depth] = node;
    if (typeof inside !== 'object' || inside === null) continue;
    if (depth > MAX_DEPTH) throw tooDeep();
    for (const member of Object.values(inside)) open.push([member, depth + 1]);
  }
}
