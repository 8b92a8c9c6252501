import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The packaged CloudFormation, as `npm run package` leaves it. */

export const root = join(import.meta.dirname, '..', '..');

export interface Resource {
  readonly Type: string;
  readonly Properties: Readonly<Record<string, unknown>>;
  readonly DeletionPolicy?: string;
}

export interface Template {
  readonly Resources: Readonly<Record<string, Resource>>;
}

export interface Statement {
  readonly Sid?: string;
  readonly Effect: string;
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
}

export interface Policy {
  readonly PolicyDocument: { readonly Statement: readonly Statement[] };
}

export const readBuilt = (path: string): unknown => JSON.parse(readFileSync(join(root, '.build', path), 'utf8'));

export const template = readBuilt('package/cloudformation-template-update-stack.json') as Template;

/** Resources of a type, by logical id. */
export function ofType(type: string): [string, Readonly<Record<string, unknown>>][] {
  return Object.entries(template.Resources)
    .filter(([, resource]) => resource.Type === type)
    .map(([id, { Properties }]) => [id, Properties]);
}

/** The logical id that a reference leads to. */
export function target(reference: unknown): string {
  const { Ref, 'Fn::GetAtt': attribute } = reference as { Ref?: string; 'Fn::GetAtt'?: string | readonly string[] };
  if (Ref !== undefined) return Ref;
  const id = typeof attribute === 'string' ? attribute.split('.')[0] : attribute?.[0];
  if (id === undefined) throw new Error(`no reference: ${JSON.stringify(reference)}`);
  return id;
}

/** `control` for ControlLambdaFunction. */
export const functionName = (logicalId: string): string => logicalId.replace('LambdaFunction', '').toLowerCase();

export const statementsOf = (role: Readonly<Record<string, unknown>>): readonly Statement[] =>
  ((role['Policies'] ?? []) as readonly Policy[]).flatMap(({ PolicyDocument }) => PolicyDocument.Statement);

export const actionsOf = ({ Action }: Statement): readonly string[] => [Action].flat();
