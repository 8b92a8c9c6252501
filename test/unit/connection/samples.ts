import { resources, type KubeObject, type ObjectMeta } from '../../../lib/model/api.ts';
import { parseBinding, parseConnection, type AnyBinding, type Connection } from '../../../lib/model/kinds.ts';

/** A moment for tests that inject the clock. */
export const NOW = Date.parse('2026-01-01T12:00:00Z');

/** A Connection as an API server would answer it. */
export function connectionObject(
  name: string,
  change: { secret?: string; spec?: object; status?: unknown; metadata?: Partial<ObjectMeta> } = {},
): KubeObject {
  const { secret = 'demo', spec = {}, status, metadata = {} } = change;
  return {
    apiVersion: 'core.kbind.io/v1alpha1',
    kind: 'Connection',
    metadata: { name, uid: `uid-${name}`, resourceVersion: '1', generation: 1, ...metadata },
    spec: { kubeconfigSecretRef: { namespace: 'kbind', name: secret }, ...spec },
    ...(status === undefined ? {} : { status }),
  } as KubeObject;
}

export const aConnection = (name: string, change?: Parameters<typeof connectionObject>[1]): Connection =>
  parseConnection(connectionObject(name, change));

/** A ClusterBinding as an API server would answer it. */
export function bindingObject(
  name: string,
  change: { apis?: readonly string[]; connection?: string; metadata?: Partial<ObjectMeta>; spec?: object } = {},
): KubeObject {
  const { apis = ['a.x'], connection = 'demo', metadata = {}, spec = {} } = change;
  return {
    apiVersion: 'core.kbind.io/v1alpha1',
    kind: resources.clusterBindings.kind,
    metadata: { name, uid: `uid-${name}`, resourceVersion: '1', generation: 1, ...metadata },
    spec: { connectionRef: { name: connection }, apis: apis.map((api) => ({ name: api })), ...spec },
  };
}

export const aBinding = (name: string, change?: Parameters<typeof bindingObject>[1]): AnyBinding =>
  parseBinding(bindingObject(name, change), 'ClusterBinding');
