import { Unsupported } from './ast.ts';

/** A token: text as written, and the value of a literal. */
export interface Token {
  readonly type: 'number' | 'string' | 'name' | 'symbol' | 'end';
  readonly text: string;
  readonly value?: unknown;
}

const PATTERN =
  /\s+|\/\/[^\n]*|(?<number>\d+\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|0x[0-9a-fA-F]+u?|\d+u?)|(?<string>[rR]?(?:"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))|(?<name>[A-Za-z_][A-Za-z0-9_]*)|(?<symbol>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()[\]{}])/y;

/** Splits a rule into tokens. */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  PATTERN.lastIndex = 0;
  while (PATTERN.lastIndex < text.length) {
    const found = PATTERN.exec(text);
    if (!found) throw new Unsupported(`cannot read ${JSON.stringify(text)}`);
    const { number, string, name, symbol } = found.groups ?? {};
    if (number !== undefined) tokens.push({ type: 'number', text: number, value: Number(number.replace(/u$/, '')) });
    else if (string !== undefined) tokens.push({ type: 'string', text: string, value: unquote(string) });
    else if (name !== undefined) tokens.push({ type: 'name', text: name });
    else if (symbol !== undefined) tokens.push({ type: 'symbol', text: symbol });
  }
  return [...tokens, { type: 'end', text: '' }];
}

const ESCAPES: Record<string, string> = { n: '\n', t: '\t', r: '\r', a: '\u0007', b: '\b', f: '\f', v: '\v' };

function unquote(text: string): string {
  const raw = /^[rR]/.test(text);
  const body = raw ? text.slice(1) : text;
  const width = body.startsWith('"""') || body.startsWith("'''") ? 3 : 1;
  const inner = body.slice(width, -width);
  if (raw) return inner;
  return inner.replaceAll(/\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)/g, (_all, code: string) =>
    code.length > 1 ? String.fromCodePoint(Number.parseInt(code.slice(1), 16)) : (ESCAPES[code] ?? code),
  );
}
