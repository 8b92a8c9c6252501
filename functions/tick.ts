import middy from '@middy/core';
import { tickFromEnvironment } from '../lib/app/from-environment.ts';
import type { TickEvent } from '../lib/app/tick-handler.ts';

/** Every minute: asks for each cluster's refreshes and, at its turn, for its backstop sweep. */
export const handler = middy<TickEvent, undefined>({ timeoutEarlyInMillis: 0 }).handler(async (event) => {
  await tickFromEnvironment()(event);
});
