import { timestamp } from '../api/object.ts';
import { CRDS, type Crd } from '../crd/model.ts';
import { CRD_SCHEMA } from '../crd/schema.ts';
import type { World } from '../rest/world.ts';
import { trackUpdate } from '../ssa/fieldmanager.ts';
import { mergeType } from '../ssa/types.ts';

const API_VERSION = 'apiextensions.k8s.io/v1';

/** Stores a new status as the server's own, so that managedFields tell who wrote it. */
export function putStatus({ store, now }: World, live: Crd, next: Crd): void {
  const tracked = trackUpdate(live, next, {
    writer: { manager: 'kube-apiserver', operation: 'Update', apiVersion: API_VERSION, subresource: 'status' },
    typeOf: (apiVersion) => (apiVersion === API_VERSION ? mergeType(CRD_SCHEMA) : undefined),
    resetFields: ['metadata', 'spec'],
    time: timestamp(now()),
  });
  store.put(CRDS, tracked);
}
