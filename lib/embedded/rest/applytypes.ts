import { StatusError } from '../api/status.ts';
import type { KubeObject } from '../api/object.ts';
import { appliedProblems } from '../ssa/check.ts';
import { mergeType } from '../ssa/types.ts';
import type { Call } from './world.ts';

/** Refuses an applied configuration that cannot be merged: nobody could own its fields. */
export function checkAppliedTypes(applied: KubeObject, call: Call): void {
  const problems = appliedProblems(applied, mergeType(call.version.schema));
  if (problems.length === 0) return;
  const { namespace, name } = applied.metadata;
  const version = applied.apiVersion.includes('/') ? applied.apiVersion : `/${applied.apiVersion}`;
  const place = `${namespace ?? ''}/${name}; ${version}, Kind=${applied.kind}`;
  const [only] = problems;
  const shown = problems.length === 1 ? only : `errors:\n  ${problems.join('\n  ')}`;
  throw new StatusError(500, '', `failed to create typed patch object (${place}): ${shown}`);
}
