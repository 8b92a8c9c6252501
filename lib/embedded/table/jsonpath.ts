import { isObject } from '../json/json.ts';

type Step = (values: unknown[]) => unknown[];

const cache = new Map<string, Step[]>();

/** Every value that a printer column's JSONPath names: fields, `[n]`, `[*]` and `[?(@.field=="x")]`. */
export function evaluateJsonPath(object: unknown, path: string): unknown[] {
  let steps = cache.get(path);
  if (!steps) cache.set(path, (steps = parse(path)));
  return steps.reduce<unknown[]>((values, step) => step(values), [object]);
}

const TOKEN =
  /\.?\[\?\(@\.?([^=!<>]*?)\s*(?:(==|!=)\s*(?:"([^"]*)"|'([^']*)'|([^)\s]+)))?\s*\)\]|\[(-?\d+)\]|\[\*\]|\['([^']+)'\]|\["([^"]+)"\]|\.\*|\.((?:\\.|[^.[\]\\])+)/gy;

function parse(path: string): Step[] {
  const text = path.replace(/^\{|\}$/g, '').replace(/^\$/, '');
  const steps: Step[] = [];
  const source = text.startsWith('.') || text.startsWith('[') ? text : `.${text}`;
  TOKEN.lastIndex = 0;
  for (let found = TOKEN.exec(source); found; found = TOKEN.exec(source)) steps.push(stepOf(found));
  return steps;
}

function stepOf(found: RegExpExecArray): Step {
  const [token, field, operator, double, single, bare, index, quoted, doubleQuoted, name] = found;
  if (field !== undefined) return filter(field, operator, double ?? single ?? bare);
  if (index !== undefined)
    return (values) => values.flatMap((value) => (Array.isArray(value) ? defined(value.at(Number(index))) : []));
  const key = quoted ?? doubleQuoted ?? name?.replaceAll(/\\(.)/g, '$1');
  if (key !== undefined)
    return (values) => values.flatMap((value) => (isObject(value) && Object.hasOwn(value, key) ? [value[key]] : []));
  return token.includes('*') ? (values) => values.flatMap(children) : (values) => values;
}

const defined = (value: unknown): unknown[] => (value === undefined ? [] : [value]);

function children(value: unknown): unknown[] {
  if (Array.isArray(value)) return value as unknown[];
  return isObject(value) ? Object.values(value) : [];
}

function filter(field: string, operator: string | undefined, wanted: string | undefined): Step {
  const read = (item: unknown): unknown => (field === '' ? item : evaluateJsonPath(item, `.${field}`)[0]);
  const matches = (item: unknown): boolean => {
    const value = read(item);
    if (operator === undefined) return value !== undefined;
    return (String(value) === wanted) === (operator === '==');
  };
  return (values) => values.flatMap((value) => children(value).filter(matches));
}
