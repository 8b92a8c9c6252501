import { Argument, Command, Option } from 'commander';
import { addBind } from './commands/bind.ts';
import { addClusters } from './commands/clusters.ts';
import { addDiff } from './commands/diff.ts';
import { addDlq } from './commands/dlq.ts';
import { addExplain } from './commands/explain.ts';
import { addReconcile } from './commands/reconcile.ts';
import { addStatus } from './commands/status.ts';
import { addUnbind } from './commands/unbind.ts';
import { completionScript, shells, type Shell } from './completion.ts';
import { exitCodes } from './exit-codes.ts';
import { formats } from './output.ts';
import { positive, withExamples, type GlobalOptions, type Host } from './session.ts';

/** Seconds that one cluster may take, unless told. */
const TIMEOUT_SECONDS = 10;

/** All commands. Options of the program may stand anywhere on the line. */
export function createProgram(host: Host): Command {
  const program = new Command('kbind-fleet')
    .description('See, understand and repair a fleet of kbind-serverless from one terminal.')
    .addOption(new Option('--fleet <dir>', 'a directory of NAME.kubeconfig files, with the cell that runs here for it'))
    .addOption(new Option('--stage <stage>', 'a deployed cell'))
    .addOption(new Option('--region <region>', 'AWS region of the deployed cell'))
    .addOption(new Option('--profile <profile>', 'AWS profile of the person'))
    .addOption(new Option('--installation <name>', 'installation of the cell').default('kbind'))
    .addOption(new Option('-o, --output <format>', 'how answers are printed').choices([...formats]).default('table'))
    .addOption(
      new Option('--timeout <seconds>', 'what one cluster may take').argParser(positive).default(TIMEOUT_SECONDS),
    )
    .option('--no-color', 'print without colours')
    .option('--quiet', 'print answers and errors only', false)
    .option('--debug', 'print stack traces', false);
  for (const add of [addClusters, addStatus, addExplain, addDiff, addDlq, addReconcile, addBind, addUnbind]) {
    add(program, host);
  }
  addCompletion(program, host);
  program.addHelpText(
    'after',
    `\nWithout --stage and --fleet it talks to the cell that npm start runs here.\n\n${exitText()}`,
  );
  eachCommand(program, (command) => command.exitOverride().showHelpAfterError('(add --help for help)'));
  return program;
}

const exitText = (): string =>
  ['Exit codes:', ...Object.values(exitCodes).map(([code, says]) => `  ${code}  ${says}`)].join('\n');

function addCompletion(program: Command, host: Host): void {
  const command = program
    .command('completion')
    .description('Prints a script by which a shell completes commands and options.')
    .addArgument(new Argument('<shell>', 'the shell').choices([...shells]))
    .action((shell: Shell, _options: unknown, self: Command) => {
      const { out } = host.terminal(self.optsWithGlobals<GlobalOptions>());
      out.write(`${completionScript(program, shell)}\n`);
      host.exit(0);
    });
  withExamples(command, {
    args: 'completion bash',
    says: 'put it into ~/.bashrc: source <(kbind-fleet completion bash)',
  });
}

/** The program and every command below it. */
export function eachCommand(command: Command, visit: (command: Command) => void): void {
  visit(command);
  for (const sub of command.commands) eachCommand(sub, visit);
}
