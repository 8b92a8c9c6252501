import pc from 'picocolors';
import type { LogFields, Logger } from '../model/log.ts';
import { startLocalCell, type LocalCell } from './cell.ts';
import { writeEndpointFile } from './endpoint-file.ts';
import { Narrator } from './narrator.ts';

/** How often what happened is told, ms. */
const TELL_MS = 1_000;

/** A cell that tells what it does. */
export interface NarratedCell {
  readonly cell: LocalCell;
  stop(): Promise<void>;
}

/** Starts a cell for a folder of kubeconfigs and prints what happens in it. */
export async function startNarratedCell(options: {
  readonly fleetDir: string;
  readonly verbose: boolean;
  readonly print: (line: string) => void;
}): Promise<NarratedCell> {
  const { fleetDir, verbose, print } = options;
  const narrator = new Narrator(print);
  const cell = await startLocalCell({
    fleetDir,
    allowLoopback: true,
    log: printingLogger(print, verbose, {}),
    env: verbose ? { LOG_LEVEL: 'INFO' } : {},
    onDelivery: (delivery) => narrator.delivered(delivery),
    onConnected: (cluster, uid) => narrator.connected(cluster, uid),
    onUnreachable: (cluster, why) => narrator.unreachable(cluster, why),
  });
  const removeEndpointFile = await writeEndpointFile(cell, fleetDir);
  let deadLetters = 0;
  const timer = setInterval(() => {
    narrator.flush();
    const now = cell.depth('deadLetters').ready + cell.depth('workDead').ready;
    if (now > deadLetters) narrator.deadLetters(now);
    deadLetters = now;
  }, TELL_MS);
  return {
    cell,
    async stop() {
      clearInterval(timer);
      await removeEndpointFile();
      const { undelivered } = await cell.stop();
      narrator.flush();
      if (undelivered > 0) print(`${undelivered} change(s) were not delivered; the next start finds them again`);
    },
  };
}

/** The forwarders' and pollers' own lines: warnings and errors always, the rest when asked for. */
function printingLogger(print: (line: string) => void, verbose: boolean, fixed: LogFields): Logger {
  const line = (mark: string) => (message: string, fields?: LogFields) => {
    const known = Object.entries({ ...fixed, ...fields }).filter(([, value]) => value !== undefined);
    print(`${mark}  ${message}${known.map(([name, value]) => ` ${name}=${String(value)}`).join('')}`);
  };
  const quiet = (): void => undefined;
  return {
    debug: quiet,
    info: verbose ? line(pc.dim('info     ')) : quiet,
    warn: verbose ? line(pc.yellow('warning  ')) : quiet,
    error: line(pc.red('error    ')),
    child: (fields) => printingLogger(print, verbose, { ...fixed, ...fields }),
  };
}
