import type { Answered, Asked } from './apart.ts';
import { startBenchServer } from './servers.ts';

/** An embedded API server that a parent process asks over IPC; ends with the parent's end of the channel. */
const server = await startBenchServer('embedded', process.argv[2] ?? 'apart');

function answer(question: Asked): Promise<unknown> {
  switch (question.ask) {
    case 'addUser':
      return server.addUser(question.name);
    case 'mark':
      return server.mark();
    case 'since':
      return server.since(question.mark);
    default:
      return Promise.reject(new Error('the parent asked for something else'));
  }
}

process.on('message', (question: Asked) => {
  void answer(question).then((found) => process.send?.({ id: question.id, answer: found } satisfies Answered));
});
process.once('disconnect', () => void server.stop().then(() => process.exit(0)));
process.send?.(server.kubeconfig);
