/** An expression of the Common Expression Language. Operators are calls named like `_+_`. */
export type Expression =
  | { readonly kind: 'literal'; readonly value: unknown }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'select'; readonly target: Expression; readonly field: string }
  | { readonly kind: 'list'; readonly items: readonly Expression[] }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [Expression, Expression])[] }
  | {
      readonly kind: 'call';
      readonly name: string;
      readonly target?: Expression;
      readonly args: readonly Expression[];
    };

/** A rule that this server cannot evaluate: it does not know all of the language. */
export class Unsupported extends Error {}

/** A rule that went wrong while it was evaluated. */
export class EvaluationError extends Error {}
