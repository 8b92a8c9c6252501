import { reconcileBinding } from '../reconcile/binding/reconcile.ts';
import { reconcileConnection } from '../reconcile/connection/reconcile.ts';
import { reconcileInstance } from '../reconcile/instance/reconcile.ts';
import { reconcileSyncer } from '../reconcile/syncer/reconcile.ts';
import { runRefresh } from '../sweep/refresh.ts';
import { runSweep } from '../sweep/sweep.ts';
import type { Controllers } from './engine.ts';

/** Which function reconciles what. */
export const controllers: Controllers = {
  reconcile: {
    connection: reconcileConnection,
    clusterbinding: reconcileBinding,
    binding: reconcileBinding,
    crd: reconcileSyncer,
    instance: reconcileInstance,
  },
  sweep: runSweep,
  refresh: runRefresh,
};
