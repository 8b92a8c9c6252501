import type { LabelSelector } from './kinds.ts';

/** `metav1.LabelSelector` as a server takes it and as it is matched here. Pure. */

/** One requirement. */
export interface Requirement {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values: readonly string[];
}

const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const PREFIX = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MAX_PREFIX = 253;

/** A label's key as API servers take it: an optional DNS prefix, a name of at most 63 characters. */
function isLabelKey(key: string): boolean {
  const slash = key.indexOf('/');
  if (slash < 0) return NAME.test(key);
  const prefix = key.slice(0, slash);
  return prefix.length <= MAX_PREFIX && PREFIX.test(prefix) && NAME.test(key.slice(slash + 1));
}

const isLabelValue = (value: string): boolean => value === '' || NAME.test(value);

/** What is wrong with a requirement, naming the field as the API server would; undefined: nothing. */
function problemOf({ key, operator, values }: Requirement): string | undefined {
  if (!isLabelKey(key)) return `"${key}" is no label key`;
  const listed = operator === 'In' || operator === 'NotIn';
  if (listed && values.length === 0) return `${operator} of "${key}" needs values`;
  if (!listed && values.length > 0) return `${operator} of "${key}" takes no values`;
  const bad = values.find((value) => !isLabelValue(value));
  return bad === undefined ? undefined : `"${bad}" is no label value`;
}

/**
 * The requirements of a selector, all of which must hold; none for an empty one, which selects everything.
 * Everything that goes into the selector's text is checked here, so that no key or value can say more than it means.
 */
export function requirementsOf(selector: LabelSelector | undefined): readonly Requirement[] | { problem: string } {
  const requirements: readonly Requirement[] = [
    ...Object.entries(selector?.matchLabels ?? {}).map(([key, value]): Requirement => ({
      key,
      operator: 'In',
      values: [value],
    })),
    ...(selector?.matchExpressions ?? []).map(({ key, operator, values = [] }) => ({ key, operator, values })),
  ];
  const problem = requirements.map(problemOf).find((found) => found !== undefined);
  return problem === undefined ? requirements : { problem };
}

const texts: { readonly [Operator in Requirement['operator']]: (key: string, values: readonly string[]) => string } = {
  In: (key, values) => (values.length === 1 ? `${key}=${values[0] ?? ''}` : `${key} in (${values.join(',')})`),
  NotIn: (key, values) => `${key} notin (${values.join(',')})`,
  Exists: (key) => key,
  DoesNotExist: (key) => `!${key}`,
};

/** The selector in the query of a list or watch. */
export const selectorText = (requirements: readonly Requirement[]): string =>
  requirements.map(({ key, operator, values }) => texts[operator](key, values)).join(',');

/** Whether labels satisfy every requirement, as the server decides it. */
export const matchesLabels = (
  requirements: readonly Requirement[],
  labels: Readonly<Record<string, string>> = {},
): boolean =>
  requirements.every(({ key, operator, values }) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    if (operator === 'Exists') return value !== undefined;
    if (operator === 'DoesNotExist') return value === undefined;
    const listed = value !== undefined && values.includes(value);
    return operator === 'In' ? listed : !listed;
  });
