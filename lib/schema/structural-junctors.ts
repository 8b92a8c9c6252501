import { isMap } from '../kube/json.ts';
import type { OpenApiSchema } from './openapi-document.ts';
import { pickPlain, valueMembers } from './structural-members.ts';

/** Deeper nesting of allOf, anyOf, oneOf and not than anybody writes. */
const MAX_DEPTH = 8;
const LISTS = ['allOf', 'anyOf', 'oneOf'] as const;
const MEMBERS: ReadonlySet<string> = new Set([...valueMembers, ...LISTS, 'not', 'required', 'properties', 'items']);

/**
 * The logical junctors of a schema that a structural one may hold: nothing but value validations, and these only of fields
 * that `main`, its structural form, has as well. A junctor of which one part cannot be kept goes as a whole.
 */
export function junctors(schema: OpenApiSchema, main: OpenApiSchema): OpenApiSchema {
  return Object.fromEntries(
    [...LISTS, 'not'].flatMap((junctor) => {
      const kept = junctorOf(schema, junctor, { main, depth: 0 });
      return kept === undefined ? [] : [[junctor, kept]];
    }),
  );
}

interface Within {
  readonly main: OpenApiSchema;
  readonly depth: number;
}

function junctorOf(schema: OpenApiSchema, junctor: string, within: Within): unknown {
  const value = schema[junctor];
  if (junctor === 'not') return value === undefined ? undefined : validation(value, within);
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const parts = value.map((part: unknown) => validation(part, within));
  return parts.includes(undefined) ? undefined : parts;
}

/** A part of a junctor, or undefined where anything of it cannot be kept. */
function validation(part: unknown, { main, depth }: Within): OpenApiSchema | undefined {
  if (!isMap(part) || depth > MAX_DEPTH) return undefined;
  const members = Object.keys(part);
  const inner = { main, depth: depth + 1 };
  const kept: OpenApiSchema = {
    ...pickPlain(part, valueMembers),
    ...present('required', namesOf(part['required'])),
    ...present('properties', fieldsOf(part['properties'], inner)),
    ...present(
      'items',
      isMap(main['items']) ? validation(part['items'], { ...inner, main: main['items'] }) : undefined,
    ),
    ...Object.fromEntries(
      [...LISTS, 'not'].flatMap((junctor) => Object.entries(present(junctor, junctorOf(part, junctor, inner)))),
    ),
  };
  return members.every((member) => MEMBERS.has(member) && Object.hasOwn(kept, member)) ? kept : undefined;
}

const present = (member: string, value: unknown): OpenApiSchema => (value === undefined ? {} : { [member]: value });

const namesOf = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === 'string') ? value : undefined;

function fieldsOf(value: unknown, { main, depth }: Within): OpenApiSchema | undefined {
  const known = main['properties'];
  if (!isMap(value) || !isMap(known)) return undefined;
  const fields = Object.entries(value).map(([name, part]) => {
    const field = Object.hasOwn(known, name) ? known[name] : undefined;
    return [name, isMap(field) ? validation(part, { main: field, depth }) : undefined] as const;
  });
  return fields.some(([, field]) => field === undefined) ? undefined : Object.fromEntries(fields);
}
