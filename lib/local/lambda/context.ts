import { randomUUID } from 'node:crypto';
import type { Context } from 'aws-lambda';
import type { DeclaredFunction, DeclaredStack } from '../stack/serverless-file.ts';
import { LOCAL_ACCOUNT } from '../queues.ts';

const oldStyle = (): never => {
  throw new Error('Handlers return promises; done, fail and succeed belong to Node.js 8');
};

/** What Lambda hands to a handler beside the event. The remaining time runs down by the function's own timeout. */
export function lambdaContext(stack: DeclaredStack, declared: DeclaredFunction): Context {
  const functionName = `${stack.service}-${stack.stage}-${declared.name}`;
  const endsAt = performance.now() + declared.timeoutSeconds * 1000;
  return {
    functionName,
    functionVersion: '$LATEST',
    invokedFunctionArn: `arn:aws:lambda:${stack.region}:${LOCAL_ACCOUNT}:function:${functionName}`,
    memoryLimitInMB: String(declared.memoryMb),
    awsRequestId: randomUUID(),
    logGroupName: `/aws/lambda/${functionName}`,
    logStreamName: 'local',
    callbackWaitsForEmptyEventLoop: false,
    getRemainingTimeInMillis: () => Math.max(0, Math.round(endsAt - performance.now())),
    done: oldStyle,
    fail: oldStyle,
    succeed: oldStyle,
  };
}
