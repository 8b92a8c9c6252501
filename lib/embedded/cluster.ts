import { randomBytes, randomUUID } from 'node:crypto';
import { stringify } from 'yaml';
import { timestamp, type KubeObject } from './api/object.ts';
import { Rules, type DenyRule } from './auth/rules.ts';
import { Users } from './auth/users.ts';
import { builtinResources } from './builtin/resources.ts';
import { startControllers } from './controllers/controllers.ts';
import { Authority, type KeyPair } from './pki/authority.ts';
import { Registry } from './registry/registry.ts';
import type { World } from './rest/world.ts';
import { ApiServer, type ObservedRequest } from './server.ts';
import { Store } from './storage/store.ts';

/** What {@link startEmbeddedCluster} takes. */
export interface EmbeddedClusterOptions {
  readonly name?: string;
  /** How many changes of one resource are remembered for watches and continued lists. */
  readonly historyLimit?: number;
  /** The server's clock. */
  readonly now?: () => Date;
}

/** How a user of an embedded cluster is known. */
export interface UserOptions {
  readonly name: string;
  readonly groups?: readonly string[];
  readonly auth?: 'token' | 'certificate';
}

/** A user's own way in. */
export interface EmbeddedUser {
  readonly name: string;
  /** Self-contained kubeconfig YAML. */
  readonly kubeconfig: string;
  readonly token?: string;
}

/** A Kubernetes API server in this process, with everything it holds in memory. */
export interface EmbeddedCluster {
  readonly name: string;
  /** The server's URL. */
  readonly server: string;
  /** gitVersion of the API that it imitates. */
  readonly version: string;
  /** Self-contained kubeconfig YAML of a cluster admin. */
  readonly kubeconfig: string;
  addUser(options: UserOptions): Promise<EmbeddedUser>;
  /** Makes every credential of this user invalid: 401 from now on. */
  removeUser(name: string): void;
  /** Forbids something to somebody; returns what takes the rule away again. */
  deny(rule: DenyRule): () => void;
  /** Calls back for every request that was authenticated; returns what ends that. */
  onRequest(observer: (request: ObservedRequest) => void): () => void;
  /** Forgets all history: watches and continued lists from before are answered with 410. */
  compact(): void;
  /** Ends all running watches, as a restart of a server would. */
  stopWatches(): void;
  /** Sends a bookmark on all running watches that take them. */
  bookmark(): void;
  stop(): Promise<void>;
}

const NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];
const VERSION = 'v1.37.0-embedded';

/** Starts an embedded Kubernetes API server on a free port. */
export async function startEmbeddedCluster(options: EmbeddedClusterOptions = {}): Promise<EmbeddedCluster> {
  const name = options.name ?? 'embedded';
  const authority = await Authority.create(`${name}-ca`);
  const [identity, admin] = await Promise.all([authority.server(), authority.client('admin', ['system:masters'])]);
  const world: World = {
    store: new Store(options.historyLimit),
    registry: new Registry(),
    now: options.now ?? (() => new Date()),
  };
  const stopControllers = startControllers(world);
  for (const resource of builtinResources()) world.registry.register(resource);
  for (const namespace of NAMESPACES)
    world.store.put({ group: '', plural: 'namespaces' }, namespaceObject(namespace, world.now()));
  const users = new Users();
  const rules = new Rules();
  const observers = new Set<(request: ObservedRequest) => void>();
  const server = new ApiServer({
    world,
    users,
    rules,
    identity,
    authority: authority.certificate,
    observe: (request) => observers.forEach((observer) => observer(request)),
  });
  const url = await server.listen();
  const place = { name, server: url, authority: authority.certificate };
  return {
    name,
    server: url,
    version: VERSION,
    kubeconfig: kubeconfigOf(place, 'admin', certificateCredentials(admin)),
    addUser: (user) => addUser(user, { place, authority, users }),
    removeUser: (user) => users.remove(user),
    deny: (rule) => rules.deny(rule),
    onRequest(observer) {
      observers.add(observer);
      return () => void observers.delete(observer);
    },
    compact: () => world.store.compact(),
    stopWatches: () => server.stopWatches(),
    bookmark: () => server.bookmark(),
    async stop() {
      stopControllers();
      await server.close();
    },
  };
}

function namespaceObject(name: string, now: Date): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name,
      uid: randomUUID(),
      creationTimestamp: timestamp(now),
      labels: { 'kubernetes.io/metadata.name': name },
    },
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  };
}

interface Place {
  readonly name: string;
  readonly server: string;
  readonly authority: string;
}

async function addUser(
  options: UserOptions,
  { place, authority, users }: { place: Place; authority: Authority; users: Users },
): Promise<EmbeddedUser> {
  const user = { name: options.name, groups: options.groups ?? [] };
  if (options.auth === 'certificate') {
    const pair = await authority.client(user.name, user.groups);
    users.add(user);
    return { name: user.name, kubeconfig: kubeconfigOf(place, user.name, certificateCredentials(pair)) };
  }
  const token = randomBytes(24).toString('base64url');
  users.add(user, token);
  return { name: user.name, token, kubeconfig: kubeconfigOf(place, user.name, { token }) };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

const certificateCredentials = (pair: KeyPair): Record<string, string> => ({
  'client-certificate-data': base64(pair.certificate),
  'client-key-data': base64(pair.key),
});

function kubeconfigOf(place: Place, user: string, credentials: Record<string, string>): string {
  const { name } = place;
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server: place.server, 'certificate-authority-data': base64(place.authority) } }],
    users: [{ name: user, user: credentials }],
    contexts: [{ name, context: { cluster: name, user } }],
    'current-context': name,
  });
}
