/** Seeded chance (mulberry32): one number decides everything that a run does. */
export interface Random {
  /** In [0, 1). */
  next(): number;
  /** True with that probability. */
  chance(probability: number): boolean;
  /** A whole number in [0, below). */
  below(bound: number): number;
  pick<T>(from: readonly T[]): T;
  /** Another stream, which the use of this one does not shift. */
  fork(name: string): Random;
}

function hashText(text: string, seed: number): number {
  let hash = 2166136261 ^ seed;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 16777619);
  return hash >>> 0;
}

export function seeded(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  return {
    next,
    chance: (probability) => next() < probability,
    below: (bound) => Math.floor(next() * bound),
    pick: (from) => from[Math.floor(next() * from.length)] as (typeof from)[number],
    fork: (name) => seeded(hashText(name, seed)),
  };
}
