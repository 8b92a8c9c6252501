import middy from '@middy/core';
import { appFromEnvironment } from '../lib/app/app-from-environment.ts';
import type { ReplayAnswer } from '../lib/app/replay-handler.ts';

/** Lists, tries, replays and drops dead letters; invoked directly, by an operator or an automation of theirs. */
export const handler = middy<unknown, ReplayAnswer>({ timeoutEarlyInMillis: 0 }).handler((event, context) =>
  appFromEnvironment().handlers.replay(event, context),
);
