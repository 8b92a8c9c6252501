import { isAlias, isMap, isScalar, isSeq, parseDocument } from 'yaml';
import { losslessNumber, put, type Obj } from './json.ts';

const MAX_ALIASES = 100;

/** Parses one YAML document the way kube-apiserver does: YAML 1.1-like scalars, string keys, long integers kept. */
export function parseYaml(text: string): unknown {
  const document = parseDocument(text, {
    version: '1.1',
    merge: true,
    uniqueKeys: false,
    maxAliasCount: MAX_ALIASES,
  } as object);
  const [error] = document.errors;
  if (error) throw new SyntaxError(error.message);
  return read(document.contents, document);
}

type Document = ReturnType<typeof parseDocument>;

function read(node: unknown, document: Document): unknown {
  if (isAlias(node)) return read(node.resolve(document), document);
  if (isScalar(node)) return scalar(node.value, node.source);
  if (isSeq(node)) return node.items.map((item) => read(item, document));
  if (!isMap(node)) return null;
  const result: Obj = {};
  for (const { key, value } of node.items) {
    const name = isScalar(key) ? (key.source ?? String(key.value)) : String(key);
    put(result, name, read(value, document));
  }
  return result;
}

function scalar(value: unknown, source: string | undefined): unknown {
  if (value instanceof Date) return source ?? value.toISOString();
  if (typeof value === 'bigint') return losslessNumber(value.toString());
  if (typeof value === 'number' && source !== undefined && /^-?\d+$/.test(source)) return losslessNumber(source);
  return value ?? null;
}
