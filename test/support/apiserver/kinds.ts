import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { startEmbeddedCluster, type EmbeddedCluster } from '../../../lib/embedded/index.ts';
import { startRealCluster } from './real.ts';

/** What embedded and real API servers have in common. */
export interface TestCluster {
  readonly name: string;
  /** gitVersion. */
  readonly version: string;
  /** Self-contained kubeconfig YAML of a cluster admin. */
  readonly kubeconfig: string;
  /** Set on the embedded one, which can do what a test needs and no request asks for. */
  readonly embedded?: EmbeddedCluster;
  addUser(options: { name: string; groups?: string[] }): Promise<{ readonly kubeconfig: string }>;
  /** A user without any permission. */
  addStranger(name: string): Promise<{ readonly kubeconfig: string }>;
  /** Forgets history, so that older resource versions are gone. */
  compact(): Promise<void>;
  stop(): Promise<void>;
}

/** A server that can be started, named before it is. */
export interface ClusterKind {
  readonly name: string;
  readonly embedded: boolean;
  /** The minor version of the API that it serves. */
  readonly minor: number;
  start(name: string): Promise<TestCluster>;
}

const EMBEDDED_MINOR = 37;

export const embeddedKind: ClusterKind = {
  name: `embedded server (like v1.${EMBEDDED_MINOR})`,
  embedded: true,
  minor: EMBEDDED_MINOR,
  async start(name) {
    const cluster = await startEmbeddedCluster({ name });
    return {
      name: `embedded ${cluster.version}`,
      version: cluster.version,
      kubeconfig: cluster.kubeconfig,
      embedded: cluster,
      addUser: (options) => cluster.addUser(options),
      // The embedded server lets everybody do everything that is not denied.
      async addStranger(stranger) {
        const user = await cluster.addUser({ name: stranger });
        cluster.deny({ user: stranger });
        return user;
      },
      compact() {
        cluster.compact();
        return Promise.resolve();
      },
      stop: () => cluster.stop(),
    };
  },
};

function realKind(assets: string): ClusterKind {
  const printed = execFileSync(join(assets, 'kube-apiserver'), ['--version'], { encoding: 'utf8' }).trim();
  const version = printed.replace('Kubernetes ', '');
  return {
    name: `kube-apiserver ${version}`,
    embedded: false,
    minor: Number(/^v1\.(\d+)/.exec(version)?.[1]),
    async start(name) {
      const cluster = await startRealCluster({ name, assets });
      return { ...cluster, addStranger: (stranger) => cluster.addUser({ name: stranger }) };
    },
  };
}

/**
 * Every server that a suite runs on: the embedded one, and the real one of KUBEBUILDER_ASSETS where that is set. With
 * KBIND_TEST_SERVERS=real (`npm run test:real`) the real one alone. Nothing else of the machine counts.
 */
export function clusterKinds(): ClusterKind[] {
  const assets = process.env['KUBEBUILDER_ASSETS'];
  if (!assets) return [embeddedKind];
  const real = realKind(assets);
  return process.env['KBIND_TEST_SERVERS'] === 'real' ? [real] : [embeddedKind, real];
}
