import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { BenchServer, SeenRequest } from './servers.ts';

/** What the parent asks of an embedded API server in a process of its own. */
export type Question =
  | { readonly ask: 'addUser'; readonly name: string }
  | { readonly ask: 'mark' }
  | { readonly ask: 'since'; readonly mark: number };
export type Asked = Question & { readonly id: number };
export interface Answered {
  readonly id: number;
  readonly answer: unknown;
}

const MAIN = join(import.meta.dirname, 'apart-main.ts');

/** An embedded API server that takes no time of the process that is measured. */
export async function startApart(name: string): Promise<BenchServer> {
  const child = fork(MAIN, [name], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const [kubeconfig] = (await once(child, 'message')) as [string];
  const ask = asker(child);
  return {
    kubeconfig,
    addUser: async (user) => (await ask({ ask: 'addUser', name: user })) as string,
    mark: async () => (await ask({ ask: 'mark' })) as number,
    since: async (mark) => (await ask({ ask: 'since', mark })) as SeenRequest[],
    async stop() {
      child.disconnect();
      await once(child, 'exit');
    },
  };
}

function asker(child: ChildProcess): (question: Question) => Promise<unknown> {
  const waiting = new Map<number, (answer: unknown) => void>();
  let asked = 0;
  child.on('message', ({ id, answer }: Answered) => {
    waiting.get(id)?.(answer);
    waiting.delete(id);
  });
  return (question) => {
    const id = (asked += 1);
    const answered = new Promise((resolve) => waiting.set(id, resolve));
    child.send({ id, ...question } satisfies Asked);
    return answered;
  };
}
