import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { cliReference, cliSchema } from '../lib/cli/reference.ts';

/** Writes docs/cli.md and docs/cli-schema.json from the commands; `--check` only says whether they are current. */
const docs = join(import.meta.dirname, '..', 'docs');
const pages = { 'cli.md': cliReference(), 'cli-schema.json': cliSchema() };
for (const [name, text] of Object.entries(pages)) {
  const path = join(docs, name);
  const options = (await resolveConfig(path)) ?? {};
  const pretty = await format(text, { ...options, filepath: path });
  if (!process.argv.includes('--check')) writeFileSync(path, pretty);
  else if (readFileSync(path, 'utf8') !== pretty)
    throw new Error(`${name} is not current: node scripts/cli-reference.ts`);
}
