import type { KubeObject } from '../api/object.ts';
import type { Resource, Version } from '../api/resource.ts';
import { badRequest } from '../api/status.ts';
import { labelValueProblems, qualifiedNameProblems } from '../api/names.ts';

/** Whether a list or a watch includes an object. */
export type Matches = (object: KubeObject) => boolean;

type LabelTest = (labels: Record<string, string>) => boolean;

const everything: Matches = () => true;

/** Reads labelSelector and fieldSelector; undefined means everything. */
export function readSelectors(query: URLSearchParams, resource: Resource, version: Version): Matches | undefined {
  const labels = query.get('labelSelector');
  const fields = query.get('fieldSelector');
  if (!labels && !fields) return undefined;
  const byLabels = labels ? labelSelector(labels) : everything;
  const byFields = fields ? fieldSelector(fields, resource, version) : everything;
  return (object) => byLabels(object) && byFields(object);
}

const TOKEN = /\s*(!=|==|=|!|,|\(|\)|[^\s=!,()<>]+|[<>])/y;

function tokenize(text: string): string[] {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  const trimmed = text.trim();
  while (TOKEN.lastIndex < trimmed.length) {
    const found = TOKEN.exec(trimmed);
    if (!found) throw cannotParse(text, 'unexpected character');
    tokens.push(found[1] ?? '');
  }
  return tokens;
}

const cannotParse = (text: string, why: string): Error =>
  badRequest(`unable to parse requirement: ${why || `couldn't parse the selector string "${text}"`}`);

function labelSelector(text: string): Matches {
  const tokens = tokenize(text);
  const tests: LabelTest[] = [];
  while (tokens.length > 0) {
    tests.push(requirement(tokens, text));
    const next = tokens.shift();
    if (next !== undefined && next !== ',')
      throw cannotParse(text, `found '${next}', expected: ',' or 'end of string'`);
    if (next === ',' && tokens.length === 0) throw cannotParse(text, "found '', expected: identifier after ','");
  }
  return (object) => tests.every((test) => test(object.metadata.labels ?? {}));
}

function requirement(tokens: string[], text: string): LabelTest {
  let key = tokens.shift() ?? '';
  if (key === '!') {
    key = labelKey(tokens.shift() ?? '');
    return (labels) => !Object.hasOwn(labels, key);
  }
  key = labelKey(key);
  const operator = tokens[0];
  if (operator === undefined || operator === ',') return (labels) => Object.hasOwn(labels, key);
  tokens.shift();
  if (operator === '=' || operator === '==' || operator === '!=') return equality(key, operator, tokens);
  if (operator === 'in' || operator === 'notin') return membership({ key, negate: operator === 'notin' }, tokens, text);
  if (operator === '<' || operator === '>') return comparison(key, operator, tokens);
  throw cannotParse(text, `found '${operator}', expected: in, notin, =, ==, !=, gt, lt`);
}

function labelKey(key: string): string {
  const [problem] = qualifiedNameProblems(key);
  if (problem) throw badRequest(`unable to parse requirement: key: Invalid value: ${JSON.stringify(key)}: ${problem}`);
  return key;
}

function labelValue(value: string, key: string): string {
  const [problem] = labelValueProblems(value);
  if (problem)
    throw badRequest(
      `unable to parse requirement: values[0][${key}]: Invalid value: ${JSON.stringify(value)}: ${problem}`,
    );
  return value;
}

function equality(key: string, operator: string, tokens: string[]): LabelTest {
  const value = tokens[0] === undefined || tokens[0] === ',' ? '' : labelValue(tokens.shift() ?? '', key);
  return operator === '!='
    ? (labels) => labels[key] !== value
    : (labels) => Object.hasOwn(labels, key) && labels[key] === value;
}

function comparison(key: string, operator: '<' | '>', tokens: string[]): LabelTest {
  const limit = Number(tokens.shift());
  if (!Number.isInteger(limit))
    throw badRequest(
      `unable to parse requirement: values[0][${key}]: Invalid value: for 'Gt', 'Lt' operators, the value must be an integer`,
    );
  return (labels) => {
    const value = Number(labels[key]);
    return Object.hasOwn(labels, key) && (operator === '<' ? value < limit : value > limit);
  };
}

function membership({ key, negate }: { key: string; negate: boolean }, tokens: string[], text: string): LabelTest {
  if (tokens.shift() !== '(') throw cannotParse(text, "found '', expected: '('");
  const values = new Set<string>();
  for (;;) {
    const token = tokens.shift();
    if (token === undefined) throw cannotParse(text, "found '', expected: ',' or ')'");
    if (token === ')') break;
    if (token !== ',') values.add(labelValue(token, key));
    else if (tokens[0] === ')' || tokens[0] === ',') values.add('');
  }
  return (labels) => (Object.hasOwn(labels, key) && values.has(labels[key] ?? '')) !== negate;
}

function fieldSelector(text: string, resource: Resource, version: Version): Matches {
  const tests = text
    .split(',')
    .filter(Boolean)
    .map((part) => fieldRequirement(part, resource, version));
  return (object) => tests.every((test) => test(object));
}

function fieldRequirement(part: string, resource: Resource, version: Version): Matches {
  const found = /^(.*?)(!=|==|=)(.*)$/.exec(part);
  if (!found) throw badRequest(`invalid selector: '${part}'; can't understand '${part}'`);
  const [, name = '', operator = '=', value = ''] = found;
  const read = fieldReader(name, resource, version);
  return (object) => (read(object) === value) !== (operator === '!=');
}

function fieldReader(name: string, resource: Resource, version: Version): (object: KubeObject) => string {
  if (name === 'metadata.name') return (object) => object.metadata.name;
  if (name === 'metadata.namespace' && (resource.namespaced || resource.custom))
    return (object) => object.metadata.namespace ?? '';
  if (version.selectableFields?.includes(`.${name}`)) return (object) => selectable(object, name);
  const probe = resource.strategy.fields?.({ apiVersion: '', kind: '', metadata: { name: '' } });
  if (probe && Object.hasOwn(probe, name)) return (object) => resource.strategy.fields?.(object)[name] ?? '';
  throw badRequest(resource.custom ? `field label not supported: ${name}` : `field label not supported: ${name}`);
}

function selectable(object: KubeObject, path: string): string {
  const keys = path.split('.');
  let value: unknown = object;
  for (const key of keys) value = (value as Record<string, unknown> | undefined)?.[key];
  return typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value);
}
