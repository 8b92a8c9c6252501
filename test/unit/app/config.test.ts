import { describe, expect, it } from 'vitest';
import { readConfig } from '../../../lib/app/config.ts';

const good = {
  CONTROL_QUEUE_URL: 'https://sqs.example/1/control.fifo',
  INSTANCES_QUEUE_URL: 'https://sqs.example/1/instances.fifo',
  WORK_QUEUE_URL: 'https://sqs.example/1/work',
  DEAD_LETTERS_QUEUE_URL: 'https://sqs.example/1/dead-letters.fifo',
  WORK_DEAD_QUEUE_URL: 'https://sqs.example/1/work-dead',
  FLEET_DIR: '/fleet',
  INSTALLATION: 'kbind',
  STAGE: 'dev',
};

describe('configuration', () => {
  it('reads what is needed, and defaults to what is safe', () => {
    expect(readConfig(good)).toEqual({
      queueUrls: {
        control: good.CONTROL_QUEUE_URL,
        instances: good.INSTANCES_QUEUE_URL,
        work: good.WORK_QUEUE_URL,
        deadLetters: good.DEAD_LETTERS_QUEUE_URL,
        workDead: good.WORK_DEAD_QUEUE_URL,
      },
      fleet: { dir: '/fleet' },
      allowLoopback: false,
      region: undefined,
      sqsEndpoint: undefined,
      endpoints: {},
      installation: 'kbind',
      stage: 'dev',
      logLevel: 'INFO',
      metrics: 'emf',
      perCluster: 10,
    });
  });

  it('is frozen', () => {
    const config = readConfig(good);
    expect(Object.isFrozen(config) && Object.isFrozen(config.queueUrls)).toBe(true);
  });

  it('reports all problems at once', () => {
    const { FLEET_DIR: _, STAGE: __, ...rest } = good;
    const read = () =>
      readConfig({ ...rest, WORK_QUEUE_URL: 'work', ALLOW_LOOPBACK: 'yes', RECONCILES_PER_CLUSTER: '0' });
    expect(read).toThrow(/WORK_QUEUE_URL: must be a URL/);
    expect(read).toThrow(/exactly one of FLEET_TABLE and FLEET_DIR must be set/);
    expect(read).toThrow(/STAGE is not set/);
    expect(read).toThrow(/ALLOW_LOOPBACK: must be one of true, false/);
    expect(read).toThrow(/RECONCILES_PER_CLUSTER: must be a number from 1 to 99/);
  });

  it('takes the fleet from a table or from a directory; an empty text is none', () => {
    expect(readConfig({ ...good, FLEET_DIR: '', FLEET_TABLE: 'fleet' }).fleet).toEqual({ table: 'fleet' });
    expect(readConfig({ ...good, FLEET_TABLE: '' }).fleet).toEqual({ dir: '/fleet' });
    expect(() => readConfig({ ...good, FLEET_TABLE: 'fleet' })).toThrow(/exactly one of FLEET_TABLE and FLEET_DIR/);
  });
});
