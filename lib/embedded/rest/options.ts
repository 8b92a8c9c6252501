import { badRequest, invalid, unsupported, invalidValue, type Cause } from '../api/status.ts';
import type { Call } from './world.ts';

/** How strictly a body is read. */
export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

const OPTIONS_KINDS: Record<string, string> = {
  create: 'CreateOptions',
  update: 'UpdateOptions',
  patch: 'PatchOptions',
};
const MAX_MANAGER = 128;

/** The query parameters that every write knows. */
export interface WriteOptions {
  readonly dryRun: boolean;
  readonly manager: string;
  readonly force: boolean | undefined;
  readonly fieldValidation: FieldValidation;
}

/** Reads and checks the query parameters of a write. */
export function writeOptions(call: Call, apply = false): WriteOptions {
  const { query, info } = call;
  const causes: Cause[] = [...dryRunProblems(query), ...managerProblems(query)];
  const fieldValidation = query.get('fieldValidation') ?? 'Warn';
  if (!['Ignore', 'Warn', 'Strict', ''].includes(fieldValidation)) {
    causes.push(unsupported('fieldValidation', fieldValidation, ['', 'Ignore', 'Strict', 'Warn']));
  }
  const manager = query.get('fieldManager') ?? '';
  const force = query.get('force');
  if (apply && !manager) {
    causes.push({
      reason: 'FieldValueRequired',
      message: 'Required value: is required for apply patch',
      field: 'fieldManager',
    });
  }
  if (!apply && info.verb === 'patch' && force !== null) {
    causes.push({
      reason: 'FieldValueForbidden',
      message: 'Forbidden: may not be specified for non-apply patch',
      field: 'force',
    });
  }
  if (causes.length > 0)
    throw invalid({ group: 'meta.k8s.io', kind: OPTIONS_KINDS[info.verb] ?? 'Options' }, '', causes);
  return {
    dryRun: query.getAll('dryRun').includes('All'),
    manager: manager || managerOfUserAgent(call.userAgent),
    force: force === null ? undefined : readBoolean(force),
    fieldValidation: (fieldValidation || 'Warn') as FieldValidation,
  };
}

function managerProblems(query: URLSearchParams): Cause[] {
  const manager = query.get('fieldManager') ?? '';
  if (manager.length > MAX_MANAGER) {
    return [
      {
        reason: 'FieldValueTooLong',
        message: `Too long: may not be more than ${MAX_MANAGER} bytes`,
        field: 'fieldManager',
      },
    ];
  }
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  return /[\u0000-\u001f\u007f]/.test(manager)
    ? [invalidValue('fieldManager', manager, 'should only contain printable characters')]
    : [];
}

/** What is wrong with `dryRun`. */
export function dryRunProblems(query: URLSearchParams): Cause[] {
  const values = query.getAll('dryRun');
  return values.some((value) => value !== 'All') ? [unsupported('dryRun', values, ['All'])] : [];
}

/** A boolean query parameter. */
export function readBoolean(text: string): boolean {
  return !['false', '0', 'F', 'f', 'FALSE', 'False'].includes(text);
}

/** A number in a query parameter, or undefined. */
export function readInteger(call: Call, name: string): number | undefined {
  const text = call.query.get(name);
  if (text === null || text === '') return undefined;
  if (!/^-?\d+$/.test(text)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
  return Number(text);
}

// A client that names no manager is known by the first word of its user agent.
function managerOfUserAgent(agent: string): string {
  return (agent.split('/')[0] ?? '').slice(0, MAX_MANAGER);
}
