import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { parse } from 'yaml';

/** Writes docs/api-reference.md from infra/crds and infra/samples; `--check` only says whether it is current. */

interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly minItems?: number;
  readonly minLength?: number;
  readonly 'x-kubernetes-validations'?: readonly { readonly message?: string; readonly rule: string }[];
}

interface Crd {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly scope: string;
    readonly names: { readonly kind: string; readonly plural: string; readonly shortNames?: readonly string[] };
    readonly versions: readonly {
      readonly name: string;
      readonly additionalPrinterColumns?: readonly { readonly name: string; readonly description?: string }[];
      readonly schema: { readonly openAPIV3Schema: Schema };
    }[];
  };
}

const root = join(import.meta.dirname, '..');
const page = join(root, 'docs/api-reference.md');

const cell = (text: string): string =>
  text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll(/\s+/g, ' ').trim();

function typeOf(schema: Schema): string {
  if (schema.type === 'array') return `list of ${schema.items === undefined ? 'anything' : typeOf(schema.items)}`;
  if (typeof schema.additionalProperties === 'object') return `map of ${typeOf(schema.additionalProperties)}`;
  return schema.format ?? schema.type ?? 'anything';
}

function limitsOf(schema: Schema, required: boolean): string {
  return [
    required ? 'required' : '',
    schema.enum === undefined ? '' : schema.enum.map((word) => `\`${String(word)}\``).join(', '),
    schema.default === undefined ? '' : `default \`${JSON.stringify(schema.default)}\``,
    schema.minItems === undefined ? '' : `at least ${schema.minItems}`,
    ...(schema['x-kubernetes-validations'] ?? []).map(({ message, rule }) => message ?? rule),
  ]
    .filter((part) => part !== '')
    .join('; ');
}

/** One row a field, deepest last. */
function rows(schema: Schema, path: string): string[] {
  const inner = schema.type === 'array' ? schema.items : schema;
  return Object.entries(inner?.properties ?? {}).flatMap(([name, field]) => {
    const here = `${path}.${name}${field.type === 'array' ? '[]' : ''}`;
    const required = inner?.required?.includes(name) ?? false;
    return [
      `| \`${here}\` | ${typeOf(field)} | ${cell(limitsOf(field, required))} | ${cell(field.description ?? '')} |`,
      ...rows(field, here),
    ];
  });
}

const table = (schema: Schema | undefined, path: string): string =>
  ['| field | type | rules | meaning |', '| --- | --- | --- | --- |', ...rows(schema ?? {}, path)].join('\n');

function chapter({ spec }: Crd): string {
  const [version] = spec.versions;
  if (version === undefined) throw new Error(`${spec.names.kind} has no version`);
  const schema = version.schema.openAPIV3Schema;
  const columns = (version.additionalPrinterColumns ?? []).map(
    ({ name, description = '' }) => `- **${name}**: ${description}`,
  );
  const sample = readFileSync(join(root, `infra/samples/${spec.names.kind.toLowerCase()}.yaml`), 'utf8');
  return [
    `## ${spec.names.kind}`,
    `${schema.description ?? ''} ${spec.scope === 'Cluster' ? 'Cluster-scoped' : 'Namespaced'}; \`kubectl get ${[spec.names.plural, ...(spec.names.shortNames ?? [])].join('`, `')}\`.`,
    `### Spec\n\n${table(schema.properties?.['spec'], 'spec')}`,
    `### Status\n\n${table(schema.properties?.['status'], 'status')}`,
    `### Columns of \`kubectl get\`\n\n${columns.join('\n')}`,
    `### Example\n\n\`\`\`yaml\n${sample.trim()}\n\`\`\``,
  ].join('\n\n');
}

const crds = readdirSync(join(root, 'infra/crds'))
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => parse(readFileSync(join(root, 'infra/crds', name), 'utf8')) as Crd)
  .toSorted((a, b) => b.spec.names.kind.localeCompare(a.spec.names.kind));

const text = [
  '# API reference: core.kbind.io/v1alpha1',
  'Generated from `infra/crds` and `infra/samples` by `node scripts/api-reference.ts`; a test applies the examples. The three kinds live in the consumer cluster. kubectl needs the full name `bindings.core.kbind.io`, because the core API has a `bindings` resource too. Lists of related resources: [related-resources.md](related-resources.md); schemas: [schemas.md](schemas.md).',
  ...crds.map(chapter),
].join('\n\n');

const pretty = await format(text, { ...(await resolveConfig(page)), filepath: page });
if (!process.argv.includes('--check')) writeFileSync(page, pretty);
else if (readFileSync(page, 'utf8') !== pretty)
  throw new Error('docs/api-reference.md is not current: node scripts/api-reference.ts');
