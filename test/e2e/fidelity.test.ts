import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resources } from '../../lib/model/api.ts';
import { PRODUCT_USER, startBound, untilGone, untilObject, widgets, type F0 } from '../support/e2e/f0.ts';
import { until } from '../support/e2e/until.ts';
import { at } from '../support/e2e/objects.ts';

/** The text of one top-level member, as printed: nothing is parsed, so that no digit can get lost in the test itself. */
function memberText(text: string, member: string): string | undefined {
  const start = text.indexOf(`"${member}":`);
  if (start < 0) return undefined;
  let depth = 0;
  let quoted = false;
  for (let at = start + member.length + 3; at < text.length; at += 1) {
    const character = text[at];
    if (quoted) {
      if (character === '\\') at += 1;
      else if (character === '"') quoted = false;
    } else if (character === '"') quoted = true;
    else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') {
      depth -= 1;
      if (depth === 0) return text.slice(start + member.length + 3, at + 1);
    }
  }
  return undefined;
}

describe('bytes arrive as they are, and nothing is done twice', () => {
  let f0: F0;
  beforeAll(async () => {
    f0 = await startBound();
  });
  afterAll(() => f0.stop());

  const SPECS: Record<string, string> = {
    'integers-past-2-53': '{"big":9007199254740993,"max":9223372036854775807,"min":-9223372036854775808}',
    floats: '{"one":1.0,"small":1e-7,"large":1e300,"third":0.1}',
    'nulls-and-empties': '{"emptyMap":{},"emptyList":[],"list":[null,{},[]],"emptyString":""}',
    unicode: '{"text":"Grüße 世界 \\u0000 \\u007f \\u0085 \\u2028 \\u2029 \\ufeff 👩‍👩‍👧","key ✓ 🔑":"yes"}',
    'yaml-looking': '{"a":"yes","b":"0x1f","c":"1e3","d":"- x","e":": y","f":"{{ .tmpl }}","g":"line\\nline\\n"}',
    'proto-keys': '{"__proto__":{"polluted":true},"constructor":{"prototype":1},"hasOwnProperty":1}',
    timestamps: '{"startAt":"2024-01-01T00:00:00+02:00","precise":"2025-11-18T08:20:01.123456789Z"}',
  };

  test.each(Object.keys(SPECS))('a spec with %s survives, there and back', async (name) => {
    const spec = SPECS[name] ?? '';
    await f0.consumer.create(
      widgets,
      `{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"${name}"},"spec":${spec}}`,
      'default',
    );
    await untilObject(f0.provider, widgets, at(name));
    const [source, copy] = [await f0.consumer.text(widgets, at(name)), await f0.provider.text(widgets, at(name))];
    expect(memberText(copy, 'spec')).toBe(memberText(source, 'spec'));
    const status = `{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"${name}","resourceVersion":"${JSON.parse(copy).metadata.resourceVersion as string}"},"spec":${spec},"status":${spec}}`;
    await f0.provider.put(widgets, at(name), status, '/status');
    const provided = memberText(await f0.provider.text(widgets, at(name)), 'status');
    await until(
      'the status arrives, digit for digit',
      async () => memberText(await f0.consumer.text(widgets, at(name)), 'status') === provided,
      {
        seen: async () => memberText(await f0.consumer.text(widgets, at(name)), 'status'),
      },
    );
  });

  test('case 19: a 253-character name and a 900 KB object make the round trip', async () => {
    const long = `${'a'.repeat(61)}.${'b'.repeat(61)}.${'c'.repeat(61)}.${'d'.repeat(67)}`.slice(0, 253);
    await f0.consumer.make(widgets, at(long), { spec: { size: 's' } });
    await untilObject(f0.provider, widgets, at(long));
    const blob = 'x'.repeat(900 * 1024);
    await f0.consumer.make(widgets, at('heavy'), { spec: { blob } });
    await untilObject(
      f0.provider,
      widgets,
      at('heavy'),
      (copy) => (copy.spec as { blob: string }).blob.length > 900_000,
    );
    await f0.provider.setStatus(widgets, at('heavy'), { phase: 'Up' });
    await untilObject(
      f0.consumer,
      widgets,
      at('heavy'),
      (source) => (source.status as { phase?: string } | undefined)?.phase === 'Up',
    );
    for (const name of [long, 'heavy']) {
      await f0.consumer.delete(widgets, at(name));
      await untilGone(f0.provider, widgets, at(name));
      await untilGone(f0.consumer, widgets, at(name));
    }
  });

  test('case 19: generateName: the copy has the concrete name', async () => {
    const made = await f0.consumer.create(
      widgets,
      { apiVersion: 'example.org/v1', kind: 'Widget', metadata: { generateName: 'gen-' }, spec: { a: 1 } },
      'default',
    );
    const copy = await untilObject(f0.provider, widgets, at(made.metadata.name));
    expect((copy.metadata as { generateName?: string }).generateName).toBeUndefined();
  });

  test('a second reconcile of an unchanged key makes 2 requests and no write (counted at the API servers)', async () => {
    await f0.consumer.make(widgets, at('counted'), { spec: { size: 's' } });
    await untilObject(f0.provider, widgets, at('counted'));
    const about = async (): Promise<string[]> =>
      [...(await f0.consumer.requestsOf(PRODUCT_USER)), ...(await f0.provider.requestsOf(PRODUCT_USER))]
        .filter(({ resource, name, verb }) => resource === 'widgets' && name === 'counted' && verb !== 'watch')
        .map(({ verb }) => verb);
    await until('echoes have died down', async () => {
      const before = (await about()).length;
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      return before === (await about()).length;
    });
    await Promise.all([f0.consumer.clearAudit(), f0.provider.clearAudit()]);
    await f0.consumer.merge(widgets, at('counted'), { metadata: { annotations: { touched: 'yes' } } });
    await until('the touch was looked at', async () => (await about()).length >= 2);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect((await about()).toSorted()).toEqual(['get', 'get']);
  });

  test('restarted with empty queues it converges, and writes nothing to what is unchanged', async () => {
    const before = (await f0.provider.list(widgets)).map(
      ({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`,
    );
    await f0.restartCell();
    await f0.consumer.make(widgets, at('after-restart'), { spec: { size: 's' } });
    await untilObject(f0.provider, widgets, at('after-restart'));
    const after = (await f0.provider.list(widgets))
      .filter(({ metadata }) => metadata.name !== 'after-restart')
      .map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`);
    expect(after).toEqual(before);
    expect((await f0.consumer.get(resources.clusterBindings, { name: 'widgets' })).metadata.name).toBe('widgets');
  });
});
