import { $ZodError } from 'zod/v4/core';
import { apiName, keyOf, keyText, resources, type KubeObject, type ResourceRef } from '../model/api.ts';
import { KbindError } from '../model/errors.ts';
import { parseBinding, parseConnection, type AnyBinding, type Connection } from '../model/kinds.ts';
import type { Logger } from '../model/log.ts';

/**
 * Objects of our kinds whose stored spec does not parse. One of them must not take the rest down, and must not be taken
 * for absent where something final hangs on it: what cannot be told from it at all fails a `final` read, loudly.
 */
interface Reading {
  /** Something irreversible will rest on this list. */
  readonly final: boolean;
  readonly log: Logger;
}

/** `spec.apis: Invalid input; …`: fields and what is wrong with them, never their values. */
function reasonOf(error: unknown): string {
  if (!(error instanceof $ZodError)) return error instanceof Error ? error.message : String(error);
  const fields = error.issues.map(({ path, message }) => `${['spec', ...path.map(String)].join('.')}: ${message}`);
  return fields.join('; ').slice(0, 300);
}

function unreadable(ref: ResourceRef, object: KubeObject, error: unknown): KbindError {
  const api = apiName(ref);
  return new KbindError(
    'misconfigured',
    `${api} ${keyText(keyOf(object))} cannot be read, and nothing final is decided until it is corrected or deleted: ${reasonOf(error)}`,
    { verb: 'read', api, key: keyOf(object), side: 'consumer' },
    error,
  );
}

/** Logs and skips, or throws where the list is to be final. */
function skip(ref: ResourceRef, object: KubeObject, { final, log }: Reading, error: unknown): void {
  if (final) throw unreadable(ref, object, error);
  log.warn('object of ours cannot be read, skipped', {
    api: apiName(ref),
    key: keyText(keyOf(object)),
    error: reasonOf(error),
  });
}

interface LooseSpec {
  readonly connectionRef?: { readonly name?: unknown };
  readonly apis?: unknown;
}

/** Connection and APIs of a binding that does not parse otherwise; undefined where even they cannot be told. */
function salvage(object: KubeObject): AnyBinding['spec'] | undefined {
  const { connectionRef, apis } = (object.spec ?? {}) as LooseSpec;
  const name = connectionRef?.name;
  if (typeof name !== 'string' || !Array.isArray(apis)) return undefined;
  const names = apis.map((api) => (api as { readonly name?: unknown } | null)?.name);
  if (!names.every((api) => typeof api === 'string')) return undefined;
  return {
    connectionRef: { name },
    apis: names.map((api) => ({ name: api })),
    conflictPolicy: 'Fail',
    relatedResources: [],
  };
}

/** Bindings of one kind; an unreadable one that still shows its Connection and APIs is among them, marked. */
export function readBindings(
  objects: readonly KubeObject[],
  kind: AnyBinding['kind'],
  reading: Reading,
): readonly AnyBinding[] {
  const ref = kind === 'ClusterBinding' ? resources.clusterBindings : resources.bindings;
  return objects.flatMap((object): AnyBinding[] => {
    try {
      return [parseBinding(object, kind)];
    } catch (error) {
      const spec = salvage(object);
      if (spec !== undefined)
        return [{ kind, metadata: object.metadata, spec, status: {}, raw: object, unreadable: reasonOf(error) }];
      skip(ref, object, reading, error);
      return [];
    }
  });
}

/** Connections that parse. */
export function readConnections(objects: readonly KubeObject[], reading: Reading): readonly Connection[] {
  return objects.flatMap((object): Connection[] => {
    try {
      return [parseConnection(object)];
    } catch (error) {
      skip(resources.connections, object, reading, error);
      return [];
    }
  });
}

/** One Connection by name. Throws class `misconfigured` where it is there and cannot be read. */
export function readConnection(objects: readonly KubeObject[], name: string): Connection | undefined {
  const object = objects.find(({ metadata }) => metadata.name === name);
  if (object === undefined) return undefined;
  try {
    return parseConnection(object);
  } catch (error) {
    throw unreadable(resources.connections, object, error);
  }
}
