import { readForwarderConfig } from './config.ts';
import { startForwarderProcess } from './forwarder-process.ts';
import { createLogger } from './logging.ts';

/** Entry of the forwarder's image: `node lib/app/forwarder-main.ts`. SIGTERM and SIGINT deliver what is pending, then end. */

const FAILED = 1;

try {
  const config = readForwarderConfig();
  const running = await startForwarderProcess(config, createLogger(config));
  const stop = (): void => {
    running.stop().then(
      // What was not delivered is covered by the sweep of the next start; the exit code tells that there was some.
      (undelivered) => process.exit(undelivered === 0 ? 0 : FAILED),
      fail,
    );
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
} catch (error) {
  fail(error);
}

function fail(error: unknown): void {
  process.stderr.write(`kbind-forwarder: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(FAILED);
}
