import middy from '@middy/core';
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { appFromEnvironment } from '../lib/app/app-from-environment.ts';

/** Puts keys that are due back into their groups; runs sweeps and refreshes. */
export const handler = middy<SQSEvent, SQSBatchResponse>({
  // middy would answer in the handler's place while reconciles still run; the batch loop keeps the time.
  timeoutEarlyInMillis: 0,
}).handler((event, context) => appFromEnvironment().handlers.work(event, context));
