import { Unsupported, type Expression } from './ast.ts';
import { tokenize, type Token } from './lexer.ts';

const PRECEDENCE: Record<string, number> = {
  '||': 1,
  '&&': 2,
  '==': 3,
  '!=': 3,
  '<': 3,
  '<=': 3,
  '>': 3,
  '>=': 3,
  in: 3,
  '+': 4,
  '-': 4,
  '*': 5,
  '/': 5,
  '%': 5,
};
const CONSTANTS: Record<string, unknown> = { true: true, false: false, null: null };

/** Parses a rule; throws {@link Unsupported} where it is not the part of the language that is known here. */
export function parseRule(text: string): Expression {
  const parser = new Parser(tokenize(text));
  const expression = parser.ternary();
  parser.expect('');
  return expression;
}

class Parser {
  readonly #tokens: Token[];
  #position = 0;

  constructor(tokens: Token[]) {
    this.#tokens = tokens;
  }

  ternary(): Expression {
    const condition = this.#binary(1);
    if (!this.#accept('?')) return condition;
    const yes = this.ternary();
    this.expect(':');
    return { kind: 'call', name: '_?_:_', args: [condition, yes, this.ternary()] };
  }

  expect(text: string): void {
    if (!this.#accept(text))
      throw new Unsupported(`expected ${JSON.stringify(text)}, found ${JSON.stringify(this.#peek().text)}`);
  }

  #binary(minimum: number): Expression {
    let left = this.#unary();
    for (;;) {
      const { text, type } = this.#peek();
      const precedence = type === 'string' ? undefined : PRECEDENCE[text];
      if (precedence === undefined || precedence < minimum) return left;
      this.#position += 1;
      left = { kind: 'call', name: `_${text}_`, args: [left, this.#binary(precedence + 1)] };
    }
  }

  #unary(): Expression {
    if (this.#accept('!')) return { kind: 'call', name: '!_', args: [this.#unary()] };
    if (this.#accept('-')) return { kind: 'call', name: '-_', args: [this.#unary()] };
    return this.#postfix(this.#primary());
  }

  #postfix(start: Expression): Expression {
    let target = start;
    for (;;) {
      if (this.#accept('.')) target = this.#member(target);
      else if (this.#accept('[')) {
        const index = this.ternary();
        this.expect(']');
        target = { kind: 'call', name: '_[_]', args: [target, index] };
      } else return target;
    }
  }

  #member(target: Expression): Expression {
    const field = this.#next('name').text;
    if (!this.#accept('(')) return { kind: 'select', target, field: unescape(field) };
    return { kind: 'call', name: field, target, args: this.#list(')') };
  }

  #primary(): Expression {
    const token = this.#next();
    if (token.type === 'number' || token.type === 'string') return { kind: 'literal', value: token.value };
    if (token.type === 'name') return this.#named(token.text);
    if (token.text === '(') {
      const inner = this.ternary();
      this.expect(')');
      return inner;
    }
    if (token.text === '[') return { kind: 'list', items: this.#list(']') };
    if (token.text === '{') return this.#map();
    throw new Unsupported(`unexpected ${JSON.stringify(token.text)}`);
  }

  #named(name: string): Expression {
    if (Object.hasOwn(CONSTANTS, name)) return { kind: 'literal', value: CONSTANTS[name] };
    return this.#accept('(') ? { kind: 'call', name, args: this.#list(')') } : { kind: 'name', name };
  }

  #map(): Expression {
    const entries: [Expression, Expression][] = [];
    while (!this.#accept('}')) {
      const key = this.ternary();
      this.expect(':');
      entries.push([key, this.ternary()]);
      if (!this.#accept(',') && this.#peek().text !== '}') throw new Unsupported('expected , or }');
    }
    return { kind: 'map', entries };
  }

  #list(end: string): Expression[] {
    const items: Expression[] = [];
    while (!this.#accept(end)) {
      items.push(this.ternary());
      if (!this.#accept(',') && this.#peek().text !== end) throw new Unsupported(`expected , or ${end}`);
    }
    return items;
  }

  #peek(): Token {
    return this.#tokens[this.#position] ?? { type: 'end', text: '' };
  }

  #next(type?: Token['type']): Token {
    const token = this.#peek();
    if (token.type === 'end' || (type && token.type !== type))
      throw new Unsupported(`unexpected ${JSON.stringify(token.text)}`);
    this.#position += 1;
    return token;
  }

  #accept(text: string): boolean {
    const token = this.#peek();
    if (token.text !== text || token.type === 'string') return false;
    this.#position += 1;
    return true;
  }
}

const SPECIAL: Record<string, string> = { __dot__: '.', __dash__: '-', __slash__: '/', __underscores__: '__' };

/** A property name that CEL cannot write is escaped in rules. */
function unescape(name: string): string {
  const replaced = name.replaceAll(/__(?:dot|dash|slash|underscores)__/g, (part) => SPECIAL[part] ?? part);
  return /^__[a-z]+__$/.test(replaced) && replaced === name ? name.slice(2, -2) : replaced;
}
