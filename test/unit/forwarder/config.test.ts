import { describe, expect, it } from 'vitest';
import { readForwarderConfig } from '../../../lib/app/config.ts';

const urls = {
  CONTROL_QUEUE_URL: 'https://sqs/control.fifo',
  INSTANCES_QUEUE_URL: 'https://sqs/instances.fifo',
  WORK_QUEUE_URL: 'https://sqs/work',
};

describe('forwarder configuration', () => {
  it('needs nothing but the queues', () => {
    expect(readForwarderConfig(urls)).toMatchObject({
      send: {
        to: 'queues',
        urls: { control: urls.CONTROL_QUEUE_URL, instances: urls.INSTANCES_QUEUE_URL, work: urls.WORK_QUEUE_URL },
      },
      allowLoopback: false,
      port: 8080,
      logLevel: 'INFO',
    });
  });

  it('names every problem at once', () => {
    const read = () =>
      readForwarderConfig({ ...urls, CONTROL_QUEUE_URL: undefined, WORK_QUEUE_URL: 'x', PORT: 'http' });
    expect(read).toThrow(/WORK_QUEUE_URL: must be a URL; PORT: must be a port; CONTROL_QUEUE_URL is not set/);
  });

  it('sends through the webhook with a URL and a key file, and one way only', () => {
    const ingest = { INGEST_URL: 'https://ingest.example/v1/keys', INGEST_KEY_FILE: '/key/hmac' };
    const { INGEST_URL: url, INGEST_KEY_FILE: keyFile } = ingest;
    expect(readForwarderConfig(ingest).send).toEqual({ to: 'ingest', url, keyFile });
    expect(() => readForwarderConfig({ ...ingest, ...urls })).toThrow(/keys go one way/);
    expect(() => readForwarderConfig({ INGEST_URL: url })).toThrow(/INGEST_KEY_FILE is not set/);
    expect(() => readForwarderConfig({ INGEST_KEY_FILE: keyFile })).toThrow(/INGEST_URL is not set/);
    expect(() => readForwarderConfig({})).toThrow(/either INGEST_URL and INGEST_KEY_FILE or the three queue URLs/);
  });
});
