/**
 * The order in which Kubernetes prefers versions of a CRD: general availability before beta before alpha, each with the
 * highest number first, then everything else by name.
 */
const KUBE_VERSION = /^v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?$/;
const STAGES = ['alpha', 'beta', undefined];

type Rank = readonly [stage: number, major: number, minor: number];

function rank(version: string): Rank | undefined {
  const match = KUBE_VERSION.exec(version);
  if (match === null) return undefined;
  const [, major, stage, minor] = match;
  return [STAGES.indexOf(stage), Number(major), Number(minor ?? 0)];
}

/** Sorts the preferred version first. */
export function byVersionPriority(left: { readonly name: string }, right: { readonly name: string }): number {
  const [a, b] = [rank(left.name), rank(right.name)];
  if (a === undefined && b === undefined) return left.name < right.name ? -1 : Number(left.name > right.name);
  if (a === undefined) return 1;
  if (b === undefined) return -1;
  return b[0] - a[0] || b[1] - a[1] || b[2] - a[2];
}
