import { groupVersion } from '../api/resource.ts';
import { timestamp } from '../api/object.ts';
import type { ManagedWrite } from '../ssa/fieldmanager.ts';
import { mergeType, type MergeType } from '../ssa/types.ts';
import type { WriteOptions } from './options.ts';
import type { Call } from './world.ts';

/** How field management sees this call. */
export function managedWrite(call: Call, options: WriteOptions, operation: 'Apply' | 'Update'): ManagedWrite {
  const { resource, version, info, world } = call;
  const typeOf = (apiVersion: string): MergeType | undefined => {
    const name = apiVersion.startsWith(`${resource.group}/`) ? apiVersion.slice(resource.group.length + 1) : apiVersion;
    if (groupVersion(resource.group, name) !== apiVersion) return undefined;
    const found = resource.versions.find((each) => each.name === name);
    return found && mergeType(found.schema);
  };
  return {
    writer: {
      manager: options.manager,
      operation,
      apiVersion: groupVersion(resource.group, version.name),
      subresource: info.verb === 'create' ? '' : info.subresource,
    },
    typeOf,
    resetFields: resetFields(call),
    time: timestamp(world.now()),
  };
}

function resetFields(call: Call): string[] {
  if (call.info.subresource === 'status') return ['metadata', 'spec'];
  return call.version.status ? ['status'] : [];
}
