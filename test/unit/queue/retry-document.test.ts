import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { errorClasses } from '../../../lib/model/errors.ts';
import { retryPolicy, type Policy } from '../../../lib/queue/retry-policy.ts';

const document = readFileSync('docs/retries.md', 'utf8').replaceAll(/ +/g, ' ');

function actionText(policy: Policy): string {
  if (policy.action === 'retry') return 'retry';
  if (policy.action === 'dead-letter') return 'dead letter at once';
  const { firstSeconds, maxSeconds } = policy;
  return firstSeconds === maxSeconds ? `wait ${firstSeconds} s` : `wait ${firstSeconds} s, doubling to ${maxSeconds} s`;
}

describe('docs/retries.md', () => {
  it.each(errorClasses)('says what the table does with %s', (errorClass) => {
    const policy = retryPolicy[errorClass];
    expect(document).toContain(`| \`${errorClass}\` | ${actionText(policy)} | ${policy.why} |`);
  });
});
