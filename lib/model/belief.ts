/** How long reads of Connections and bindings are believed, ms (spec §8). */
export const BELIEF_MS = 5_000;
/** A write that rests on a belief is not sent with less of it left than this, ms. */
export const BELIEF_MARGIN_MS = 1_000;
