import middy from '@middy/core';
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import { ingestFromEnvironment } from '../lib/app/from-environment.ts';

/** Takes signed keys from forwarders that hold no cloud credentials, and puts them on the queues. */
export const handler = middy<APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2>({
  timeoutEarlyInMillis: 0,
}).handler((event, context) => ingestFromEnvironment()(event, context));
