import { pathToFileURL } from 'node:url';
import type { Context } from 'aws-lambda';
import type { DeclaredFunction, DeclaredStack } from '../stack/serverless-file.ts';
import { lambdaContext } from './context.ts';

export type LambdaHandler = (event: never, context: Context) => unknown;

/** One function of the stack, ready to be invoked. */
export interface LocalFunction {
  readonly declared: DeclaredFunction;
  /** Runs the handler. Throws what it threw, or an error that says that its time is up. */
  invoke(event: object): Promise<unknown>;
  /** Resolves when no handler of this function runs any more, late ones included. */
  settled(): Promise<void>;
}

/** Imports the handler that serverless.yml names. Throws an error that names the file when it has no such export. */
export async function loadHandler(declared: DeclaredFunction): Promise<LambdaHandler> {
  const module = (await import(pathToFileURL(declared.file).href)) as Record<string, unknown>;
  const handler = module[declared.exportName];
  if (typeof handler !== 'function') throw new Error(`${declared.file} exports no function ${declared.exportName}`);
  return handler as LambdaHandler;
}

/**
 * Wraps a handler as Lambda does: event and answer are JSON, the context's time runs down, and time that is up is a
 * failure. Unlike Lambda, a handler that ran out of time cannot be frozen: it ends in the background.
 */
export function localFunction(
  stack: DeclaredStack,
  declared: DeclaredFunction,
  handler: LambdaHandler,
  enter: () => void,
): LocalFunction {
  const running = new Set<Promise<unknown>>();
  return {
    declared,
    async invoke(event) {
      const context = lambdaContext(stack, declared);
      enter();
      const run = start(handler, asJson(event), context);
      running.add(run);
      const forget = (): boolean => running.delete(run);
      run.then(forget, forget);
      return asJson(await withinTime(run, declared));
    },
    async settled() {
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
}

async function start(handler: LambdaHandler, event: unknown, context: Context): Promise<unknown> {
  return handler(event as never, context);
}

async function withinTime(run: Promise<unknown>, declared: DeclaredFunction): Promise<unknown> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new Error(`${declared.name}: task timed out after ${declared.timeoutSeconds.toFixed(2)} seconds`));
  }, declared.timeoutSeconds * 1000);
  try {
    return await Promise.race([run, late]);
  } finally {
    clearTimeout(timer);
  }
}

const asJson = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));
