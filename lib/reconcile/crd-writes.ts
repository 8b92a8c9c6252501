import { resources, type KubeObject } from '../model/api.ts';
import { isError } from '../model/errors.ts';
import { CONNECTION_ANNOTATION, MANAGED_LABEL, SCHEMA_HASH_ANNOTATION, TRUE } from '../model/markers.ts';
import type { Belief, WriteOptions } from '../kube/types.ts';
import { hashJson, jsonEqual } from '../kube/json.ts';
import { schemaFromCrd, type ConsumerSchema } from '../schema/from-crd.ts';
import { setMarkers } from './object-writes.ts';
import { confirmSides } from './side.ts';
import type { Side, World } from './world.ts';

/**
 * The writes to consumer CRDs: create and update, never server-side apply (it answers 500 on older API servers for schemas
 * with CEL rules). Updates carry the resourceVersion that was read, so that nobody's change is lost.
 */
export interface CrdWrite {
  readonly provider: Side;
  readonly connection: { readonly metadata: { readonly name: string } };
  readonly belief?: Belief | undefined;
}

const markers = (connection: string, hash: string): Readonly<Record<string, string>> => ({
  [CONNECTION_ANNOTATION]: connection,
  [SCHEMA_HASH_ANNOTATION]: hash,
});

const options = (world: World, { belief }: CrdWrite): WriteOptions => ({ signal: world.signal, belief });

/** Installs a CRD that was not there. Somebody who was quicker → class `conflict`. */
export async function createCrd(world: World, write: CrdWrite, schema: ConsumerSchema): Promise<KubeObject> {
  await confirmSides(write.provider, world.consumer);
  const { name } = write.connection.metadata;
  return world.consumer.client.create(
    resources.crds,
    {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: resources.crds.kind,
      metadata: {
        name: schema.name,
        labels: { [MANAGED_LABEL]: TRUE },
        annotations: { ...schema.annotations, ...markers(name, schema.hash) },
      },
      spec: schema.spec,
    },
    options(world, write),
  );
}

/** The CRD with our spec and markers in place of its own; everything else of its metadata stays. */
function replacement(crd: KubeObject, schema: ConsumerSchema, connection: string): KubeObject {
  const { labels, annotations } = crd.metadata;
  return {
    ...crd,
    metadata: {
      ...crd.metadata,
      labels: { ...labels, [MANAGED_LABEL]: TRUE },
      annotations: { ...annotations, ...schema.annotations, ...markers(connection, schema.hash) },
    },
    spec: schema.spec,
  };
}

/**
 * Replaces the spec of a CRD that is ours or being adopted. What the server refuses → class `invalid`, nothing changed. A
 * dry run comes first: a refusal that lasts is then found out by every pass without a write being tried.
 */
export async function replaceCrd(
  world: World,
  write: CrdWrite,
  crd: KubeObject,
  schema: ConsumerSchema,
): Promise<KubeObject> {
  const wanted = replacement(crd, schema, write.connection.metadata.name);
  await world.consumer.client.update(resources.crds, wanted, { dryRun: true, signal: world.signal });
  await confirmSides(write.provider, world.consumer);
  return world.consumer.client.update(resources.crds, wanted, options(world, write));
}

/** Puts our markers on a CRD and leaves its spec. Without an offered hash, that of its own spec in our form is recorded. */
export async function stampCrd(
  world: World,
  write: CrdWrite,
  crd: KubeObject,
  offeredHash: string | undefined,
): Promise<KubeObject> {
  await confirmSides(write.provider, world.consumer);
  const hash = offeredHash ?? crd.metadata.annotations?.[SCHEMA_HASH_ANNOTATION] ?? ownHash(crd);
  return setMarkers(
    world.consumer.client,
    { ref: resources.crds, object: crd },
    { labels: { [MANAGED_LABEL]: TRUE }, annotations: markers(write.connection.metadata.name, hash) },
    options(world, write),
  );
}

/** A CRD that serves nothing cannot be brought into our form: then its spec is hashed as it stands. */
function ownHash(crd: KubeObject): string {
  try {
    return schemaFromCrd(crd).hash;
  } catch (error) {
    if (!isError(error, 'misconfigured')) throw error;
    return hashJson(crd.spec);
  }
}

/** True when our spec would change nothing of the CRD: a dry run of the update, because servers default and drop fields. */
export async function specIsEqual(world: World, crd: KubeObject, schema: ConsumerSchema): Promise<boolean> {
  try {
    const wanted = { ...crd, spec: schema.spec };
    const after = await world.consumer.client.update(resources.crds, wanted, { dryRun: true, signal: world.signal });
    return jsonEqual(after.spec, crd.spec);
  } catch (error) {
    if (!isError(error, 'invalid')) throw error;
    return false; // what the server refuses in its place is another spec
  }
}
