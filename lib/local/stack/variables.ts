import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';

/**
 * Serverless Framework variables, as far as our own files use them: `self:`, `sls:stage`, `opt:`, `param:` and `file()`,
 * with a quoted fallback. CloudFormation's own `${AWS::Region}` and `${Logical.Attr}` are left for Fn::Sub.
 */
export interface VariableSources {
  /** The parsed serverless.yml. */
  readonly self: unknown;
  /** Folder that `file()` starts from. */
  readonly folder: string;
  /** Command line options: `stage`, `region`. */
  readonly options: Readonly<Record<string, string>>;
  readonly params: Readonly<Record<string, unknown>>;
}

const VARIABLE = /\$\{((?:self|sls|opt|param|file)[:(][^{}]*)\}/;
/** One variable refers to another at most this often; more is a circle. */
const MAX_DEPTH = 10;

/** A copy of the value with all variables replaced. Throws an error that names the variable that has no value. */
export function resolveVariables(value: unknown, sources: VariableSources, depth = 0): unknown {
  if (depth > MAX_DEPTH * 4) throw new Error('serverless.yml: its variables refer to each other in a circle');
  if (typeof value === 'string') return resolveText(value, sources, depth);
  if (Array.isArray(value)) return value.map((item) => resolveVariables(item, sources, depth));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, resolveVariables(item, sources, depth)]),
  );
}

function resolveText(text: string, sources: VariableSources, depth: number): unknown {
  const match = VARIABLE.exec(text);
  if (match === null) return text;
  const found = resolveVariables(lookUp(match[1] ?? '', sources), sources, depth + 1);
  if (match[0] === text) return found;
  return resolveText(
    text.replace(match[0], () => String(found)),
    sources,
    depth + 1,
  );
}

function lookUp(expression: string, sources: VariableSources): unknown {
  for (const alternative of expression.split(',').map((part) => part.trim())) {
    const quoted = /^(['"])(.*)\1$/.exec(alternative);
    const found = quoted === null ? lookUpOne(alternative, sources) : quoted[2];
    if (found !== undefined) return found;
  }
  throw new Error(`serverless.yml: \${${expression}} has no value`);
}

function lookUpOne(expression: string, sources: VariableSources): unknown {
  const file = /^file\(([^)]+)\)(?::(.+))?$/.exec(expression);
  if (file !== null) return pathIn(readYaml(resolve(sources.folder, file[1] ?? '')), file[2]);
  const [source, ...rest] = expression.split(':');
  const name = rest.join(':');
  if (source === 'self') return pathIn(sources.self, name);
  if (source === 'opt') return sources.options[name];
  if (source === 'param') return sources.params[name];
  if (source === 'sls' && name === 'stage') return sources.options['stage'];
  throw new Error(`serverless.yml: the local runner does not know \${${expression}}`);
}

function pathIn(value: unknown, path: string | undefined): unknown {
  if (path === undefined || path === '') return value;
  return path
    .split('.')
    .reduce<unknown>(
      (at, name) => (typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[name] : undefined),
      value,
    );
}

/** Reads a YAML file; CloudFormation's short tags mean the same as the long form. */
export function readYaml(path: string): unknown {
  return parse(readFileSync(path, 'utf8'), {
    customTags: [
      { tag: '!Ref', resolve: (text: string) => ({ Ref: text }) },
      { tag: '!Sub', resolve: (text: string) => ({ 'Fn::Sub': text }) },
      { tag: '!GetAtt', resolve: (text: string) => ({ 'Fn::GetAtt': text.split('.') }) },
    ],
  });
}

/** Folder of a file, absolute. */
export const folderOf = (path: string): string => dirname(resolve(path));
