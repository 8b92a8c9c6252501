import type { KubeObject, ResourceRef } from '../../../lib/model/api.ts';

/** Whatever fields a test's own API has. */
export type Loose = Record<string, unknown>;

/** The key of a namespaced object. */
export const at = (name: string, namespace = 'default'): { namespace: string; name: string } => ({ namespace, name });

/** An API of the group `example.org`, version `v1`. */
export const api = (resource: string, kind: string, namespaced = true): ResourceRef => ({
  group: 'example.org',
  version: 'v1',
  resource,
  kind,
  namespaced,
});

export const specOf = (object: KubeObject | undefined): Loose => (object?.spec ?? {}) as Loose;

export const statusOf = (object: KubeObject | undefined): Loose => (object?.status ?? {}) as Loose;

export const annotationsOf = (object: KubeObject | undefined): Readonly<Record<string, string>> =>
  object?.metadata.annotations ?? {};
