import pLimit from 'p-limit';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { checkFleetLease, holderOf } from '../fleet/lease.ts';
import { readClusterIdentity } from '../kube/identity.ts';
import type { KubeClient, SentObject } from '../kube/types.ts';
import { apiName, resources, type ResourceRef } from '../model/api.ts';
import { crdCondition } from '../model/crd.ts';
import { isError, toKbindError } from '../model/errors.ts';
import type { Cell } from './cell.ts';

/** Whether a consumer cluster can be worked on. */
export interface Check {
  readonly check: string;
  readonly ok: boolean;
  readonly detail?: string | undefined;
}

export interface Preflight {
  readonly uid: string | undefined;
  readonly checks: readonly Check[];
}

/** Every verb that the functions use in a consumer cluster. Instances' APIs come with what is bound. */
export const NEEDED: readonly (readonly [ref: ResourceRef, verbs: readonly string[], subresource?: string])[] = [
  [resources.connections, ['get', 'list', 'patch']],
  [resources.connections, ['patch'], 'status'],
  [resources.clusterBindings, ['get', 'list', 'patch', 'create', 'update', 'delete']],
  [resources.clusterBindings, ['patch'], 'status'],
  [resources.bindings, ['get', 'list', 'patch']],
  [resources.bindings, ['patch'], 'status'],
  [resources.crds, ['get', 'list', 'patch', 'create', 'update', 'delete']],
  [resources.secrets, ['get', 'patch']],
  [resources.namespaces, ['get']],
  [resources.events, ['get', 'create', 'patch']],
  [resources.leases, ['get', 'create', 'update']],
];

const REVIEW: ResourceRef = {
  group: 'authorization.k8s.io',
  version: 'v1',
  resource: 'selfsubjectaccessreviews',
  kind: 'SelfSubjectAccessReview',
  namespaced: false,
};
/** Each is a connection of its own where they go side by side: few, as many clusters are asked at once. */
const AT_ONCE = 4;
const OWN_CRDS = [resources.connections, resources.clusterBindings, resources.bindings];
const CRDS_FOLDER = join(import.meta.dirname, '..', '..', 'infra', 'crds');

/** Whom the Lease of a cluster must name, or nobody, for this cell to work on it. */
export const holderIn = ({ app }: Pick<Cell, 'app'>): string => holderOf(app.config.installation, app.config.stage);

/** Asks a cluster whether it is all there: reachable, whose it is, what we may do, whether our CRDs are installed. */
export async function preflight(client: KubeClient, holder: string, signal: AbortSignal): Promise<Preflight> {
  try {
    const uid = await readClusterIdentity(client, { signal });
    const checks = await Promise.all([owned(client, holder), permitted(client, signal), installed(client, signal)]);
    return { uid, checks: [{ check: 'reachable', ok: true }, ...checks] };
  } catch (thrown) {
    return { uid: undefined, checks: [failed('reachable', thrown)] };
  }
}

function failed(check: string, thrown: unknown): Check {
  const { errorClass, message } = toKbindError(thrown);
  return { check, ok: false, detail: `${errorClass}: ${message}` };
}

async function owned(client: KubeClient, holder: string): Promise<Check> {
  try {
    await checkFleetLease(client, holder);
    return { check: 'installation', ok: true };
  } catch (thrown) {
    return failed('installation', thrown);
  }
}

async function permitted(client: KubeClient, signal: AbortSignal): Promise<Check> {
  const limit = pLimit(AT_ONCE);
  const wanted = NEEDED.flatMap(([ref, verbs, subresource]) => verbs.map((verb) => ({ ref, verb, subresource })));
  try {
    const answers = await Promise.all(
      wanted.map((one) => limit(async () => ((await may(client, one, signal)) ? [] : [nameOf(one)]))),
    );
    const denied = answers.flat();
    if (denied.length === 0) return { check: 'permissions', ok: true };
    return { check: 'permissions', ok: false, detail: `not allowed: ${denied.join(', ')}` };
  } catch (thrown) {
    return failed('permissions', thrown);
  }
}

interface Wanted {
  readonly ref: ResourceRef;
  readonly verb: string;
  readonly subresource: string | undefined;
}

const nameOf = ({ ref, verb, subresource }: Wanted): string =>
  `${verb} ${apiName(ref)}${subresource === undefined ? '' : `/${subresource}`}`;

/** A question in the form of an object: nothing is stored. */
async function may(client: KubeClient, { ref, verb, subresource }: Wanted, signal: AbortSignal): Promise<boolean> {
  const { group, resource } = ref;
  const attributes = { verb, group, resource, ...(subresource === undefined ? {} : { subresource }) };
  const asked = await client.create(
    REVIEW,
    {
      apiVersion: 'authorization.k8s.io/v1',
      kind: REVIEW.kind,
      metadata: {},
      spec: { resourceAttributes: attributes },
    },
    { signal },
  );
  return (asked.status as { readonly allowed?: boolean } | undefined)?.allowed === true;
}

async function installed(client: KubeClient, signal: AbortSignal): Promise<Check> {
  try {
    const found = await Promise.all(
      OWN_CRDS.map(async (ref) => {
        const crd = await client.find(resources.crds, { name: apiName(ref) }, { signal });
        return crd !== undefined && crdCondition(crd, 'Established')?.status === 'True' ? [] : [apiName(ref)];
      }),
    );
    const missing = found.flat();
    if (missing.length === 0) return { check: 'crds', ok: true };
    return { check: 'crds', ok: false, detail: `not installed: ${missing.join(', ')}` };
  } catch (thrown) {
    return failed('crds', thrown);
  }
}

/**
 * Installs the product's CRDs; those that are there are left as they are.
 * @throws KbindError class `held` where another installation works: nothing there is ours to write
 */
export async function installCrds(client: KubeClient, holder: string, signal: AbortSignal): Promise<void> {
  await checkFleetLease(client, holder);
  for (const file of (await readdir(CRDS_FOLDER)).filter((name) => name.endsWith('.yaml'))) {
    const crd = parse(await readFile(join(CRDS_FOLDER, file), 'utf8')) as SentObject;
    await client.create(resources.crds, crd, { signal }).catch((error: unknown) => {
      if (!isError(error, 'conflict')) throw error;
    });
  }
}
