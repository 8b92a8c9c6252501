import middy from '@middy/core';
import type { ScheduledEvent } from 'aws-lambda';
import { appFromEnvironment } from '../lib/app/from-environment.ts';

/** Every minute: asks for each cluster's refreshes and, at its turn, for its backstop sweep. */
export const handler = middy<Partial<ScheduledEvent>, undefined>({ timeoutEarlyInMillis: 0 }).handler(async (event) => {
  await appFromEnvironment().handlers.tick({ time: event.time });
});
