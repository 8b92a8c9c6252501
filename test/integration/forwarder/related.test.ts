import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeClient } from '../../../lib/kube/types.ts';
import { apiName, resources, type ObjectKey, type ResourceRef } from '../../../lib/model/api.ts';
import { clusterKinds } from '../../support/apiserver/kinds.ts';
import { applyRbac, create, rbacDocuments, remove, startForwarder, startPair, until, type Pair } from './fixture.ts';

const { secrets, configmaps } = resources;
const LINE = 'clusterbinding related';

describe.each(clusterKinds())('events of related resources between two $name', (kind) => {
  let pair: Pair;
  beforeAll(async () => {
    pair = await startPair(kind);
    if (!kind.embedded) await applyRbac(pair.consumer, 'rbac-related.yaml');
  }, 180_000);
  afterAll(() => pair.stop());

  const selector = { labelSelector: { matchLabels: { app: 'widget' } } };
  const at = (name: string): ObjectKey => ({ namespace: 'default', name });
  const bind = () =>
    create(pair.consumer.admin, resources.clusterBindings, {
      metadata: { name: 'related' },
      spec: {
        connectionRef: { name: 'east' },
        apis: [{ name: 'widgets.example.org' }],
        relatedResources: [
          { resource: 'secrets', direction: 'FromProvider', selector },
          { resource: 'configmaps', direction: 'FromConsumer', selector },
        ],
      },
    });
  const make = (client: KubeClient, ref: ResourceRef, name: string, labels: Record<string, string>) =>
    create(client, ref, { metadata: { ...at(name), labels } });

  it('sources and hand-deleted copies are their binding’s key, other objects are nobody’s; it needs what its manifest grants', async () => {
    const used = new Set<string>();
    const note = (verb: string, ref: ResourceRef): void => {
      if (ref.group === '' && ['secrets', 'configmaps'].includes(ref.resource)) used.add(`${verb} ${apiName(ref)}`);
    };
    const { limited } = pair;
    const client: KubeClient = {
      ...limited,
      listMetadata: (ref, ...rest) => (note('list', ref), limited.listMetadata(ref, ...rest)),
      watch: (ref, options) => (note('watch', ref), limited.watch(ref, options)),
    };
    const { forwarder, sink } = await startForwarder(pair, { client });
    await bind();
    // Each of the four watches reports its gap once it stands, and the binding itself came.
    await until(() =>
      expect(sink.sent.filter(({ change }) => change.startsWith('related|')).length).toBeGreaterThan(0),
    );
    await until(() => expect(used.size).toBe(4));

    const ours = { 'core.kbind.io/managed': 'true', 'core.kbind.io/consumer-cluster-uid': pair.consumer.uid };
    await make(pair.provider.admin, configmaps, 'copy', ours);
    await make(pair.consumer.admin, secrets, 'copy', ours);
    const steps: [string, () => Promise<unknown>][] = [
      ['a Secret of the provider', () => make(pair.provider.admin, secrets, 'a', { app: 'widget' })],
      ['it goes', () => remove(pair.provider.admin, secrets, at('a'))],
      ['a ConfigMap of the consumer', () => make(pair.consumer.admin, configmaps, 'a', { app: 'widget' })],
      ['a copy on the provider goes', () => remove(pair.provider.admin, configmaps, at('copy'))],
      ['a copy on the consumer goes', () => remove(pair.consumer.admin, secrets, at('copy'))],
    ];
    for (const [what, step] of steps) {
      const from = sink.sent.length;
      await step();
      await until(() => expect(sink.keys(from).includes(LINE) ? what : 'nothing yet').toBe(what));
    }
    const from = sink.sent.length;
    await make(pair.provider.admin, secrets, 'other', { app: 'else' });
    await make(pair.provider.admin, secrets, 'last', { app: 'widget' });
    await until(() => expect(sink.keys(from)).toContain(LINE));
    expect(sink.keys(from).filter((line) => line === LINE)).toHaveLength(1);

    const declared = (await rbacDocuments('rbac-related.yaml')).flatMap(({ rules }) =>
      ((rules ?? []) as { resources: string[]; verbs: string[] }[]).flatMap((rule) =>
        rule.verbs.flatMap((verb) => rule.resources.map((resource) => `${verb} ${resource}`)),
      ),
    );
    // The kubeconfig Secret is watched by rbac.yaml's leave, with the same verbs.
    expect([...used].sort()).toEqual(declared.sort());

    await remove(pair.consumer.admin, resources.clusterBindings, { name: 'related' });
    await until(() => expect(sink.keys().at(-1)).toBe(LINE));
    await forwarder.stop();
  });
});
