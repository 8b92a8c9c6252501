import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { embeddedKind } from '../../support/apiserver/kinds.ts';
import { installCrd, startServer, type TestServer } from '../../support/apiserver/servers.ts';
import { widget, widgetCrd, widgetPath } from '../../support/apiserver/widgets.ts';

const COUNT = 10_000;
const SIDE_BY_SIDE = 50;
const LIMIT_MB = 300;

// What a real server needs for this says nothing about this project.
describe(`10,000 objects, on the embedded server only`, () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer(embeddedKind);
    await installCrd(server, widgetCrd());
    for (let i = 0; i < COUNT; i += SIDE_BY_SIDE) {
      const batch = Array.from({ length: SIDE_BY_SIDE }, (_, j) => `w-${String(i + j).padStart(5, '0')}`);
      const spec = { size: 'large', replicas: 3, free: { text: 'x'.repeat(500) }, ports: [{ name: 'http', port: 80 }] };
      await Promise.all(
        batch.map((name) => server.api.post(widgetPath('default'), widget(name, spec, { labels: { a: 'b' } }))),
      );
    }
  }, 60_000);
  afterAll(async () => {
    await server.api.close();
    await server.stop();
  });

  it('lists them page by page', async () => {
    let count = 0;
    for (let token = '', pages = 0; pages === 0 || token; pages += 1) {
      const { body } = await server.api.get(widgetPath('default'), {
        query: { limit: '500', ...(token && { continue: token }) },
      });
      count += body.items.length;
      token = body.metadata.continue ?? '';
    }
    expect(count).toBe(COUNT);
  });

  it('starts a watch with all of them and tells changes at once', async () => {
    const watch = await server.api.watch(widgetPath('default'), {});
    expect(await watch.take(COUNT)).toHaveLength(COUNT);
    await server.api.patch(widgetPath('default', 'w-05000'), 'merge', { spec: { size: 'small' } });
    expect((await watch.next())?.object.metadata.name).toBe('w-05000');
    watch.close();
  });

  it(`needs less than ${LIMIT_MB} MB of heap, this test included`, () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    collectGarbage();
    expect(process.memoryUsage().heapUsed / 1024 / 1024).toBeLessThan(LIMIT_MB);
  });
});
