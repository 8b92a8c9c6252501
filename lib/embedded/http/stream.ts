import type { ServerResponse } from 'node:http';
import type { WatchEvent, WatchSink } from '../rest/watch.ts';

/** Writes watch events as one JSON document a line. */
export function streamTo(response: ServerResponse, show: (object: unknown, first: boolean) => unknown): WatchSink {
  let first = true;
  return {
    open() {
      response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-cache, private' });
      response.flushHeaders();
    },
    send({ type, object }: WatchEvent) {
      if (response.writableEnded) return;
      const shown = type === 'ERROR' ? object : show(object, first);
      first = false;
      response.write(`${JSON.stringify({ type, object: shown })}\n`);
    },
    end() {
      if (!response.writableEnded) response.end();
    },
  };
}
