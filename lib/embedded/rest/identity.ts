import { tidyMetadata } from '../api/metadata.ts';
import type { KubeObject } from '../api/object.ts';
import { badRequest } from '../api/status.ts';
import type { Obj } from '../json/json.ts';
import { atVersion, type Call } from './world.ts';

/** A patch may not turn an object into another one. */
export function checkIdentity(call: Call, object: KubeObject, live: KubeObject): void {
  const { resource, info } = call;
  if (!object.metadata.name) {
    throw badRequest(`the name of the object (${info.name} based on URL) was undeterminable: name must be provided`);
  }
  if (object.metadata.name !== info.name) {
    throw badRequest(
      `the name of the object (${object.metadata.name ?? ''}) does not match the name on the URL (${info.name})`,
    );
  }
  const { namespace } = object.metadata;
  if (resource.namespaced && namespace && namespace !== info.namespace) {
    throw badRequest(
      `the namespace of the object (${namespace}) does not match the namespace on the request (${info.namespace})`,
    );
  }
  if (resource.namespaced) object.metadata.namespace = info.namespace;
  const shown = atVersion(live, call);
  if (object.apiVersion !== shown.apiVersion || object.kind !== shown.kind) {
    throw badRequest(
      `the API version in the data (${object.apiVersion}) does not match the expected API version (${shown.apiVersion})`,
    );
  }
  object.metadata = tidyMetadata(object.metadata as unknown as Obj);
}
