import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { loadOperatorTarget } from '../kube/operator-config.ts';
import type { ConnectionTarget } from '../kube/target.ts';

/** What the name of a consumer cluster's file ends in. */
export const KUBECONFIG_SUFFIX = '.kubeconfig';

/** A consumer cluster of a local run. */
export interface FleetCluster {
  readonly name: string;
  readonly target: ConnectionTarget;
}

/** Something about the folder that its owner must mend. The message is one line for people. */
export class FleetFolderError extends Error {
  override readonly name = 'FleetFolderError';
}

/** Reads a fleet folder: one `NAME.kubeconfig` for each consumer cluster. Throws {@link FleetFolderError}. */
export function readFleetFolder(folder: string): readonly FleetCluster[] {
  const files = filesIn(folder).filter((file) => file.endsWith(KUBECONFIG_SUFFIX));
  if (files.length === 0)
    throw new FleetFolderError(
      `fleet folder ${folder} holds no cluster: put one NAME${KUBECONFIG_SUFFIX} into it for each consumer cluster`,
    );
  return files.toSorted().map((file) => {
    try {
      return { name: file.slice(0, -KUBECONFIG_SUFFIX.length), target: loadOperatorTarget(join(folder, file)) };
    } catch (error) {
      throw new FleetFolderError(`${join(folder, file)} is no usable kubeconfig: ${oneLine(error)}`, { cause: error });
    }
  });
}

function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    const why =
      (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'does not exist' : `cannot be read: ${oneLine(error)}`;
    throw new FleetFolderError(`fleet folder ${folder} ${why}`, { cause: error });
  }
}

/** The first line of an error: parsers add excerpts, and those may hold credentials. */
function oneLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';
}
