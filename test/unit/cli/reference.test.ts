import { readFileSync } from 'node:fs';
import { format, resolveConfig } from 'prettier';
import { expect, it } from 'vitest';
import { completionScript, shells } from '../../../lib/cli/completion.ts';
import { createProgram } from '../../../lib/cli/program.ts';
import { cliReference, cliSchema } from '../../../lib/cli/reference.ts';

it.each([
  ['docs/cli.md', cliReference],
  ['docs/cli-schema.json', cliSchema],
])('%s is current: node scripts/cli-reference.ts', async (path, make) => {
  const pretty = await format(make(), { ...(await resolveConfig(path)), filepath: path });
  expect(readFileSync(path, 'utf8')).toBe(pretty);
});

it.each(shells)('completes commands and options in %s', (shell) => {
  const program = createProgram({
    terminal: () => {
      throw new Error('nobody');
    },
    exit: () => undefined,
  });
  const script = completionScript(program, shell);
  for (const word of ['clusters', 'explain', 'replay', '--older-than', '--stage']) expect(script).toContain(word);
});
