import { forbidden, StatusError } from '../api/status.ts';
import type { RequestInfo } from '../http/info.ts';
import type { User } from '../rest/world.ts';
import { ANONYMOUS } from './users.ts';

/** What a user may not do. What is left out matches everything. */
export interface DenyRule {
  readonly user?: string;
  readonly verbs?: readonly string[];
  /** API groups; the core group is the empty string. */
  readonly groups?: readonly string[];
  /** Plurals, with a subresource as in `widgets/status`. */
  readonly resources?: readonly string[];
  readonly namespaces?: readonly string[];
  readonly names?: readonly string[];
}

/** What is asked for. */
export interface Attributes {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

const SELF = new Set(['selfsubjectaccessreviews', 'selfsubjectreviews']);
const OPEN_PATHS = /^\/(healthz|livez|readyz|version)(\/|$)/;

/** Everybody who is known may do everything, but for the rules that tests set. */
export class Rules {
  readonly #rules = new Set<DenyRule>();

  /** Adds a rule and returns what takes it away again. */
  deny(rule: DenyRule): () => void {
    this.#rules.add(rule);
    return () => void this.#rules.delete(rule);
  }

  allows(user: User, asked: Attributes): boolean {
    if (user.name === ANONYMOUS.name) return false;
    for (const rule of this.#rules) if (matches(rule, user, asked)) return false;
    return true;
  }

  /** Throws the 403 that RBAC would answer. */
  check(user: User, info: RequestInfo): void {
    if (!info.isResource) return checkPath(user, info);
    // Everybody who is known may ask about themselves.
    if (user.name !== ANONYMOUS.name && SELF.has(info.plural)) return;
    const resource = info.subresource ? `${info.plural}/${info.subresource}` : info.plural;
    if (this.allows(user, { ...info, resource })) return;
    const scope = info.namespace ? `in the namespace "${info.namespace}"` : 'at the cluster scope';
    const why = `User ${JSON.stringify(user.name)} cannot ${info.verb} resource ${JSON.stringify(resource)} in API group ${JSON.stringify(info.group)} ${scope}`;
    throw forbidden(info, info.name, why);
  }
}

function matches(rule: DenyRule, user: User, asked: Attributes): boolean {
  const within = (list: readonly string[] | undefined, value: string): boolean =>
    list === undefined || list.includes('*') || list.includes(value);
  if (rule.user !== undefined && rule.user !== user.name) return false;
  return (
    within(rule.verbs, asked.verb) &&
    within(rule.groups, asked.group) &&
    within(rule.resources, asked.resource) &&
    within(rule.namespaces, asked.namespace) &&
    within(rule.names, asked.name)
  );
}

function checkPath(user: User, info: RequestInfo): void {
  if (user.name !== ANONYMOUS.name || OPEN_PATHS.test(info.path)) return;
  throw new StatusError(
    403,
    'Forbidden',
    `forbidden: User ${JSON.stringify(user.name)} cannot ${info.verb} path ${JSON.stringify(info.path)}`,
    {},
  );
}
