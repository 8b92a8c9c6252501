import type { Command, Option } from 'commander';
import { exitCodes } from './exit-codes.ts';
import { createProgram, eachCommand } from './program.ts';
import { jsonSchemas } from './results.ts';
import { examplesOf } from './session.ts';

/** The reference of all commands, from what they say of themselves. */
export function cliReference(): string {
  const program = createProgram({
    terminal: () => {
      throw new Error('nobody is at the terminal');
    },
    exit: () => undefined,
  });
  const sections: string[] = [];
  eachCommand(program, (command) => {
    if (command !== program) sections.push(commandText(command));
  });
  return [
    '# kbind-fleet',
    '',
    '<!-- Made by `node scripts/cli-reference.ts` from the commands themselves. -->',
    '',
    program.description(),
    '',
    'Run it with `npx kbind-fleet` after `npm run build`, or from source with `node lib/cli/main.ts`. Without `--stage` and ' +
      '`--fleet` it talks to the cell that `npm start` runs here. A fleet directory is changed through its files: pausing a ' +
      'cluster writes `NAME.paused` beside its kubeconfig. Progress goes to standard error, answers to standard output. The ' +
      'JSON of every command is described by [cli-schema.json](cli-schema.json).',
    '',
    '## Options of every command',
    '',
    optionsText(program.options),
    '',
    '## Exit codes',
    '',
    '| code | meaning |',
    '| --- | --- |',
    ...Object.values(exitCodes).map(([code, says]) => `| ${code} | ${says} |`),
    '',
    ...sections,
  ].join('\n');
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

const cell = (text: string): string => text.replaceAll('|', String.raw`\|`).replaceAll('<', '&lt;');

function optionsText(options: readonly Option[]): string {
  const rows = options.map(({ flags, description, defaultValue, argChoices }) => {
    const choices = argChoices === undefined ? '' : ` (${argChoices.join(', ')})`;
    const byDefault =
      defaultValue === undefined || typeof defaultValue === 'boolean' ? '' : `; ${String(defaultValue)} by default`;
    return `| \`${flags.replaceAll('|', String.raw`\|`)}\` | ${cell(description)}${choices}${byDefault} |`;
  });
  return ['| option | meaning |', '| --- | --- |', ...rows].join('\n');
}

function commandText(command: Command): string {
  const usage = [pathOf(command), ...command.registeredArguments.map((argument) => argumentText(argument))].join(' ');
  const group = command.commands.length > 0;
  return [
    `## ${pathOf(command)}`,
    '',
    cell(command.description()),
    '',
    ...(group ? [] : ['```', usage, '```', '']),
    ...command.registeredArguments.map((argument) => `- \`${argument.name()}\`: ${cell(argument.description)}`),
    '',
    ...(command.options.length === 0 ? [] : [optionsText(command.options), '']),
    ...(group
      ? []
      : ['```sh', ...examplesOf(command).map(({ args, says }) => `kbind-fleet ${args} # ${says}`), '```', '']),
  ].join('\n');
}

function argumentText(argument: { name(): string; readonly required: boolean; readonly variadic: boolean }): string {
  const name = argument.variadic ? `${argument.name()}...` : argument.name();
  return argument.required ? `<${name}>` : `[${name}]`;
}

/** JSON Schema of what `-o json` prints, by command. */
export const cliSchema = (): string =>
  JSON.stringify({ $schema: 'https://json-schema.org/draft/2020-12/schema', $defs: jsonSchemas() }, undefined, 2);
