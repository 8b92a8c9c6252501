import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The packaged CloudFormation, as `npm run package` leaves it. */

export const root = join(import.meta.dirname, '..', '..');

export interface Resource {
  readonly Type: string;
  readonly Properties: Readonly<Record<string, unknown>>;
  readonly DeletionPolicy?: string;
  readonly Condition?: string;
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

/** Statements of the policies that are made unconditionally, by the role that they are attached to. */
export function statementsOf(roleId: string): readonly Statement[] {
  const own = (template.Resources[roleId]?.Properties['Policies'] ?? []) as readonly Policy[];
  const attached = Object.values(template.Resources).filter(
    ({ Type, Properties, Condition }) =>
      Type === 'AWS::IAM::Policy' &&
      Condition === undefined &&
      (Properties['Roles'] as readonly unknown[]).some((role) => target(role) === roleId),
  );
  return [...own, ...attached.map(({ Properties }) => Properties as unknown as Policy)].flatMap(
    ({ PolicyDocument }) => PolicyDocument.Statement,
  );
}

export const actionsOf = ({ Action }: Statement): readonly string[] => [Action].flat();
