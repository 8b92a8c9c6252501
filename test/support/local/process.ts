import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';

const MAIN = join(import.meta.dirname, '../../../lib/local/main.ts');

/** A started `npm start` without npm in between: signals reach it as a terminal's do. */
export class StartedProcess {
  readonly child: ChildProcess;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  #output = '';
  #errors = '';

  constructor(args: readonly string[], options: { readonly cwd?: string } = {}) {
    this.child = spawn(process.execPath, [MAIN, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NO_COLOR: '1' },
      ...options,
    });
    this.child.stdout?.on('data', (data: Buffer) => (this.#output += data.toString('utf8')));
    this.child.stderr?.on('data', (data: Buffer) => (this.#errors += data.toString('utf8')));
    this.exited = new Promise((resolve) => {
      this.child.once('close', (code, signal) => resolve({ code, signal }));
    });
  }

  get output(): string {
    return this.#output;
  }

  get errors(): string {
    return this.#errors;
  }

  /** Ends it whatever it does; for the end of a test. */
  async end(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL');
    await this.exited;
  }
}
