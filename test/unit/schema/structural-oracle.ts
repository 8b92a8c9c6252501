import { expect } from 'vitest';
import type { Crd } from '../../../lib/embedded/crd/model.ts';
import { CRD_SCHEMA } from '../../../lib/embedded/crd/schema.ts';
import { validateCrd } from '../../../lib/embedded/crd/validate.ts';
import { typeProblem } from '../../../lib/embedded/schema/typecheck.ts';
import type { OpenApiSchema } from '../../../lib/schema/openapi-document.ts';
import { INT_OR_STRING, PRESERVE } from '../../../lib/schema/structural-members.ts';

/**
 * Whether an API server would take a CRD: by the embedded server's validation, and by the rules of structural schemas once
 * more, written down from the documentation and sharing no code with either.
 */
export function expectAccepted(spec: OpenApiSchema): void {
  const sent = JSON.parse(JSON.stringify(spec)) as Crd['spec'];
  const name = `${sent.names.plural}.${sent.group}`;
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name },
    spec: sent,
  };
  expect(validateCrd(crd as unknown as Crd)).toEqual([]);
  expect(typeProblem(crd, CRD_SCHEMA, false)).toBeUndefined();
  for (const { schema } of sent.versions) {
    const root = schema?.openAPIV3Schema as unknown as OpenApiSchema;
    expect(root['type']).toBe('object');
    expect(Object.keys(root)).not.toEqual(expect.arrayContaining(['nullable']));
    expect(problems(root, 'root')).toEqual([]);
  }
}

const isNode = (value: unknown): value is OpenApiSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function problems(schema: OpenApiSchema, path: string): string[] {
  const { type, properties, items, additionalProperties } = schema;
  const found: string[] = [];
  const say = (wrong: boolean, what: string): void => void (wrong && found.push(`${path}: ${what}`));
  say('$ref' in schema || 'uniqueItems' in schema, 'forbidden member');
  say(type === undefined && schema[PRESERVE] !== true && schema[INT_OR_STRING] !== true, 'no type');
  say(schema[PRESERVE] === true && type !== undefined && type !== 'object', 'preserve without object');
  say(schema[INT_OR_STRING] === true && (type !== undefined || schema[PRESERVE] === true), 'int-or-string with type');
  say(properties !== undefined && additionalProperties !== undefined, 'properties and additionalProperties');
  say((type === 'array') !== (items !== undefined), 'array without items, or items without array');
  say(path === 'root' && additionalProperties !== undefined, 'additionalProperties at the root');
  const inner = Object.entries(isNode(properties) ? properties : {}).map(([name, one]) => [name, one] as const);
  const more = [...inner, ['[]', items] as const, ['{}', additionalProperties] as const];
  return [...found, ...more.flatMap(([name, one]) => (isNode(one) ? problems(one, `${path}.${name}`) : []))];
}
