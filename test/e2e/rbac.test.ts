import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resources, type KubeObject, type ResourceRef } from '../../lib/model/api.ts';
import {
  conditionOf,
  crdFor,
  ensureNamespace,
  installCrd,
  isTrue,
  makeBinding,
  makeConnection,
  makeKubeconfigSecret,
  startBound,
  untilGone,
  untilObject,
  widgets,
  type F0,
} from '../support/e2e/f0.ts';
import { until } from '../support/e2e/until.ts';

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

const roles: ResourceRef = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  resource: 'clusterroles',
  kind: 'ClusterRole',
  namespaced: false,
};
const grants: ResourceRef = { ...roles, resource: 'clusterrolebindings', kind: 'ClusterRoleBinding' };

/** Permissions come back within the 30 s of a wait; the rest is a busy machine. */
const HEALS_WITHIN_MS = 45_000;

/** What a provider grants a consumer's user for one API: the list that the documentation gives. */
const enough = (plural: string): Rule[] => [
  { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'create'] },
  { apiGroups: ['example.org'], resources: [plural], verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] },
];

/** The same without some verbs on one resource. */
const without = (rules: readonly Rule[], resource: string, ...verbs: readonly string[]): Rule[] =>
  rules.flatMap((rule) => {
    const left = rule.resources.includes(resource) ? rule.verbs.filter((verb) => !verbs.includes(verb)) : rule.verbs;
    return left.length === 0 ? [] : [{ ...rule, verbs: left }];
  });

/** A consumer's own user on the provider, a Connection that uses it, and one API bound through that. */
class Tenant {
  readonly name: string;
  readonly ref: ResourceRef;
  readonly #f0: F0;

  constructor(f0: F0, name: string) {
    this.#f0 = f0;
    this.name = name;
    const kind = `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
    this.ref = { group: 'example.org', version: 'v1', resource: name, kind, namespaced: true };
  }

  get api(): string {
    return `${this.name}.example.org`;
  }

  /** Binds with all permissions but some verbs on one resource. */
  async start(resource: string, ...verbs: readonly string[]): Promise<void> {
    const { consumer, provider } = this.#f0;
    await installCrd(provider, crdFor(this.ref));
    const user = await provider.real.addUser({ name: `tenant-${this.name}` });
    await provider.make(roles, { name: this.name }, { rules: without(enough(this.name), resource, ...verbs) });
    await provider.make(
      grants,
      { name: this.name },
      {
        roleRef: { apiGroup: roles.group, kind: 'ClusterRole', name: this.name },
        subjects: [{ kind: 'User', apiGroup: roles.group, name: `tenant-${this.name}` }],
      },
    );
    await makeKubeconfigSecret(consumer, this.name, user.kubeconfig);
    await makeConnection(consumer, { name: this.name, secret: this.name });
    await makeBinding(consumer, { name: this.name, connection: this.name, apis: [this.api] });
  }

  /** Leaves the user these permissions. */
  async allow(rules: readonly Rule[]): Promise<void> {
    await this.#f0.provider.merge(roles, { name: this.name }, { rules });
  }

  grant(): Promise<void> {
    return this.allow(enough(this.name));
  }

  ready(timeoutMs?: number): Promise<unknown> {
    return until(`binding ${this.name} is Ready`, async () => isTrue(await this.binding(), 'Ready'), {
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      seen: () => this.binding(),
    });
  }

  binding(): Promise<KubeObject> {
    return this.#f0.consumer.get(resources.clusterBindings, { name: this.name });
  }

  connection(): Promise<KubeObject> {
    return this.#f0.consumer.get(resources.connections, { name: this.name });
  }

  async make(name: string, namespace = 'default'): Promise<void> {
    await this.#f0.consumer.make(this.ref, { namespace, name }, { spec: { size: 's' } });
  }

  /** Messages of Events about an object, of the named reason. */
  async said(name: string): Promise<string[]> {
    return (await this.#f0.consumer.list(resources.events))
      .filter((event) => (event['involvedObject'] as { name?: string } | undefined)?.name === name)
      .map((event) => `${String(event['reason'])}: ${String(event['message'])}`);
  }

  saysForbidden(name: string, ...words: readonly string[]): Promise<unknown> {
    return until(
      `an Event about ${name} names ${words.join(', ')}`,
      async () =>
        (await this.said(name)).some(
          (text) => text.startsWith('Forbidden') && words.every((word) => text.includes(word)),
        ),
      { seen: () => this.said(name) },
    );
  }

  /** The copy is there within the time in which a grant heals. */
  copyHeals(name: string, namespace = 'default', fits: (copy: KubeObject) => boolean = () => true): Promise<unknown> {
    return until(
      `${this.name} ${namespace}/${name} reaches the provider`,
      async () => {
        const copy = await this.#f0.provider.find(this.ref, { namespace, name });
        return copy !== undefined && fits(copy);
      },
      { timeoutMs: HEALS_WITHIN_MS, seen: () => this.#f0.provider.find(this.ref, { namespace, name }) },
    );
  }
}

describe.concurrent(
  'a provider credential with too little RBAC: what is missing is named, others go on, a grant heals',
  () => {
    let f0: F0;
    beforeAll(async () => {
      f0 = await startBound();
    });
    afterAll(async () => {
      await f0.stop();
    });

    /** Everybody else keeps syncing. */
    async function othersSync(name: string): Promise<void> {
      await f0.consumer.make(widgets, { namespace: 'default', name }, { spec: { size: 's' } });
      await untilObject(f0.provider, widgets, { namespace: 'default', name });
    }
    const deniedConnection = (tenant: Tenant, ...words: readonly string[]): Promise<KubeObject> =>
      until(
        `Connection ${tenant.name} says what is denied`,
        async () => {
          const connection = await tenant.connection();
          const { status, message = '' } = conditionOf(connection, 'PermissionDenied') ?? {};
          return status === 'True' && words.every((word) => message.includes(word)) && connection;
        },
        { seen: () => tenant.connection() },
      );

    test.each([
      ['list', 'customresourcedefinitions', 'crdlists'],
      ['get', 'namespaces', 'identities'],
    ])('%s on %s: PermissionDenied on the Connection', async (verb, resource, name) => {
      const tenant = new Tenant(f0, name);
      await tenant.start(resource, verb);
      const connection = await deniedConnection(tenant, verb, resource);
      expect(conditionOf(connection, 'Ready')).toMatchObject({ status: 'False', reason: 'Forbidden' });
      await othersSync(`beside-${name}`);
      await tenant.grant();
      await tenant.ready(HEALS_WITHIN_MS);
      expect(conditionOf(await tenant.connection(), 'PermissionDenied')?.status).toBe('False');
      await tenant.make('healed');
      await tenant.copyHeals('healed');
    });

    test('get on customresourcedefinitions: PermissionDenied on the binding', async () => {
      const tenant = new Tenant(f0, 'crdgets');
      await tenant.start('customresourcedefinitions', 'get');
      const binding = await until(
        'the binding says what is denied',
        async () => {
          const object = await tenant.binding();
          return isTrue(object, 'PermissionDenied') && object;
        },
        { seen: () => tenant.binding() },
      );
      const message = conditionOf(binding, 'PermissionDenied')?.message ?? '';
      for (const word of ['get', 'customresourcedefinitions', tenant.api]) expect(message).toContain(word);
      expect(conditionOf(binding, 'Ready')).toMatchObject({ status: 'False', reason: 'Forbidden' });
      await othersSync('beside-crdgets');
      await tenant.grant();
      await tenant.ready(HEALS_WITHIN_MS);
      expect(conditionOf(await tenant.binding(), 'PermissionDenied')?.status).toBe('False');
    });

    test('watch on customresourcedefinitions: exports are found by the refresh all the same', async () => {
      const tenant = new Tenant(f0, 'crdwatches');
      await tenant.start('customresourcedefinitions', 'watch');
      await tenant.ready();
      await tenant.make('synced');
      await tenant.copyHeals('synced');
    });

    test('create on the instances: an Event on each that names verb, resource and namespace', async () => {
      const tenant = new Tenant(f0, 'creates');
      await tenant.start('creates', 'create');
      await tenant.ready();
      await tenant.make('refused');
      await tenant.saysForbidden('refused', 'create', tenant.api, 'default');
      await othersSync('beside-creates');
      await tenant.grant();
      await tenant.copyHeals('refused');
    });

    test('patch on the instances: an Event; the copy stays as it was until the grant', async () => {
      const tenant = new Tenant(f0, 'patches');
      await tenant.start('patches', 'patch');
      await tenant.ready();
      await tenant.make('old');
      await tenant.copyHeals('old');
      await f0.consumer.merge(tenant.ref, { namespace: 'default', name: 'old' }, { spec: { size: 'm' } });
      await tenant.saysForbidden('old', 'patch', tenant.api, 'default');
      expect((await f0.provider.get(tenant.ref, { namespace: 'default', name: 'old' })).spec).toEqual({ size: 's' });
      await othersSync('beside-patches');
      await tenant.grant();
      await tenant.copyHeals('old', 'default', (copy) => (copy.spec as { size: string }).size === 'm');
    });

    test('get on the instances: an Event, no copy, no release', async () => {
      const tenant = new Tenant(f0, 'gets');
      await tenant.start('gets', 'get');
      await tenant.ready();
      await tenant.make('unseen');
      await tenant.saysForbidden('unseen', 'get', tenant.api, 'default');
      await othersSync('beside-gets');
      await tenant.grant();
      await tenant.copyHeals('unseen');
    });

    test('delete on the instances: an Event; the object waits and goes after the grant', async () => {
      const tenant = new Tenant(f0, 'deletes');
      await tenant.start('deletes', 'delete');
      await tenant.ready();
      await tenant.make('kept');
      await tenant.copyHeals('kept');
      await f0.consumer.delete(tenant.ref, { namespace: 'default', name: 'kept' });
      await tenant.saysForbidden('kept', 'delete', tenant.api, 'default');
      expect(await f0.consumer.find(tenant.ref, { namespace: 'default', name: 'kept' })).toBeDefined();
      await othersSync('beside-deletes');
      await tenant.grant();
      await untilGone(f0.consumer, tenant.ref, { namespace: 'default', name: 'kept' }, HEALS_WITHIN_MS);
      expect(await f0.provider.find(tenant.ref, { namespace: 'default', name: 'kept' })).toBeUndefined();
    });

    test('unbinding without get on the instances ends: the copy is left, and named', async () => {
      const tenant = new Tenant(f0, 'leavers');
      await tenant.start('leavers');
      await tenant.ready();
      await tenant.make('left');
      await tenant.copyHeals('left');
      await tenant.allow(without(enough('leavers'), 'leavers', 'get'));
      await f0.consumer.delete(resources.clusterBindings, { name: tenant.name });
      await untilGone(f0.consumer, resources.clusterBindings, { name: tenant.name }, 120_000);
      expect(
        (await tenant.said(tenant.name)).some((text) => text.startsWith('LeftBehind') && text.includes('left')),
      ).toBe(true);
      expect(await f0.provider.find(tenant.ref, { namespace: 'default', name: 'left' })).toBeDefined();
    });

    test('create on namespaces: an Event that names the namespace; objects of namespaces that exist sync', async () => {
      const tenant = new Tenant(f0, 'spaces');
      await tenant.start('namespaces', 'create');
      await tenant.ready();
      await ensureNamespace(f0.consumer, 'only-here');
      await tenant.make('homeless', 'only-here');
      await tenant.make('housed');
      await tenant.saysForbidden('homeless', 'create', 'namespaces', 'only-here');
      await tenant.copyHeals('housed');
      await tenant.grant();
      await tenant.copyHeals('homeless', 'only-here');
    });

    test('leases: only the heartbeat fails, and it comes after the grant', async () => {
      const tenant = new Tenant(f0, 'beats');
      await tenant.start('leases', 'get', 'create', 'update');
      await tenant.ready();
      await tenant.make('synced');
      await tenant.copyHeals('synced');
      const lease = async (): Promise<boolean> =>
        (await f0.provider.list(resources.leases)).some(({ metadata }) => metadata.name.startsWith('beats-'));
      expect(await lease()).toBe(false);
      await tenant.grant();
      await until('the Lease is there', lease, { timeoutMs: HEALS_WITHIN_MS });
    });

    test.each([
      ['list', 'lists'],
      ['watch', 'watches'],
    ])('%s on the instances: specs go up; it is said; statuses come down after the grant', async (verb, name) => {
      const tenant = new Tenant(f0, name);
      await tenant.start(name, verb);
      await tenant.ready();
      await tenant.make('upwards');
      await tenant.copyHeals('upwards');
      await f0.provider.setStatus(tenant.ref, { namespace: 'default', name: 'upwards' }, { phase: 'Up' });
      await until(
        'a condition or an Event says what is denied',
        async () => {
          const said = [
            JSON.stringify((await tenant.binding()).status),
            JSON.stringify((await tenant.connection()).status),
            ...(await f0.consumer.list(resources.events)).map((event) => String(event['message'])),
          ];
          return said.some((text) => text.includes(tenant.api) && text.includes(verb) && /forbid/i.test(text));
        },
        { seen: async () => [(await tenant.binding()).status, (await tenant.connection()).status] },
      );
      await othersSync(`beside-${name}`);
      await tenant.grant();
      await until(
        'the status arrives',
        async () => (await f0.consumer.get(tenant.ref, { namespace: 'default', name: 'upwards' })).status !== undefined,
        { timeoutMs: HEALS_WITHIN_MS },
      );
    });
  },
);
