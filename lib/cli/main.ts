import { CommanderError } from 'commander';
import { isatty } from 'node:tty';
import pc from 'picocolors';
import { codeOf } from './exit-codes.ts';
import { createProgram, eachCommand } from './program.ts';
import { tellError, type GlobalOptions } from './session.ts';
import type { Terminal } from './terminal.ts';

/** The process's side of kbind-fleet. */
function terminalOf({ color, quiet }: Pick<GlobalOptions, 'color' | 'quiet'>): Terminal {
  const { stdin, stdout, stderr } = process;
  return {
    out: stdout,
    err: stderr,
    in: stdin,
    interactive: stdin.isTTY && stderr.isTTY,
    live: stderr.isTTY,
    quiet,
    // Not `isTTY`: it is undefined in a pipe, which picocolors takes for its own opinion, and in CI that is colours.
    colors: pc.createColors(color && isatty(stdout.fd) && pc.isColorSupported),
  };
}

// Whoever reads the answer may have seen enough: `kbind-fleet … | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(codeOf('ok'));
});

const program = createProgram({
  terminal: terminalOf,
  exit: (code) => void (process.exitCode = code),
});
eachCommand(program, (command) => command.configureOutput({ writeErr: (text) => void process.stderr.write(text) }));
try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? codeOf('ok') : codeOf('usage');
  else process.exitCode = tellError(terminalOf({ color: true, quiet: false }), error, process.argv.includes('--debug'));
}
