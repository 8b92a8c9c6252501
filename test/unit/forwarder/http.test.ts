import { Registry } from 'prom-client';
import { afterEach, describe, expect, it } from 'vitest';
import { startHealthServer, type HealthServer } from '../../../lib/forwarder/http.ts';
import { createForwarderMetrics } from '../../../lib/forwarder/metrics.ts';

describe('health and metrics', () => {
  let server: HealthServer | undefined;
  afterEach(() => server?.close());

  async function serve(ready: boolean): Promise<(path: string, method?: string) => Promise<Response>> {
    const { registry } = createForwarderMetrics(new Registry());
    const { port } = (server = await startHealthServer({ port: 0, host: '127.0.0.1', registry, ready: () => ready }));
    return (path, method = 'GET') => fetch(`http://127.0.0.1:${port}${path}`, { method });
  }

  it('the process lives and is ready', async () => {
    const get = await serve(true);
    expect((await get('/healthz')).status).toBe(200);
    expect((await get('/readyz')).status).toBe(200);
  });

  it('lives and is not ready while watches do not stand', async () => {
    const get = await serve(false);
    expect((await get('/healthz')).status).toBe(200);
    expect((await get('/readyz')).status).toBe(503);
  });

  it('counters stand at zero before anything happened', async () => {
    const text = await (await (await serve(true))('/metrics')).text();
    for (const name of ['forwarded_total', 'send_failures_total', 'pending']) {
      for (const queue of ['control', 'instances', 'work']) {
        expect(text).toContain(`kbind_forwarder_${name}{queue="${queue}"} 0`);
      }
    }
    expect(text).toContain('kbind_forwarder_sweeps_total 0');
    expect(text).toContain('kbind_forwarder_lag_seconds 0');
  });

  it('answers nothing else', async () => {
    const get = await serve(true);
    expect((await get('/')).status).toBe(404);
    expect((await get('/metrics', 'POST')).status).toBe(404);
  });
});
