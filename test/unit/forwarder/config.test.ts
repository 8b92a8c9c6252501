import { describe, expect, it } from 'vitest';
import { readForwarderConfig } from '../../../lib/app/forwarder-config.ts';

const urls = {
  CONTROL_QUEUE_URL: 'https://sqs/control.fifo',
  INSTANCES_QUEUE_URL: 'https://sqs/instances.fifo',
  WORK_QUEUE_URL: 'https://sqs/work',
};

describe('forwarder configuration', () => {
  it('needs nothing but the queues', () => {
    expect(readForwarderConfig(urls)).toMatchObject({
      queueUrls: { control: urls.CONTROL_QUEUE_URL, instances: urls.INSTANCES_QUEUE_URL, work: urls.WORK_QUEUE_URL },
      allowLoopback: false,
      port: 8080,
      logLevel: 'INFO',
    });
  });

  it('names every problem at once', () => {
    const read = () =>
      readForwarderConfig({ ...urls, CONTROL_QUEUE_URL: undefined, WORK_QUEUE_URL: 'x', PORT: 'http' });
    expect(read).toThrow(/CONTROL_QUEUE_URL is not set; WORK_QUEUE_URL: must be a URL; PORT: must be a port/);
  });
});
