/** The nodes of the two instance flowcharts (seeds/000), in the seed's words. */
export const nodes = {
  start: 'Consumer, provider, or binding event',
  object: 'Consumer object exists?',
  resolve: 'Resolve covering binding ClusterBinding before namespaced Binding',
  deleting: 'Consumer object deleting?',
  cleanup: 'Run instance deletion',
  bound: 'Covering binding Ready?',
  mapKey: 'Map consumer key to provider key',
  finalizer: 'Syncer finalizer already present?',
  addFinalizer: 'Add finalizer and requeue',
  target: 'Read provider object',
  ownership: 'Provider target ownership?',
  adopt: 'conflictPolicy is Adopt?',
  conflict: 'Record conflict annotation and Warning Event',
  namespace: 'Ensure provider namespace for a new namespaced object',
  apply: 'Clear old conflict marker Apply spec and ownership markers',
  status: 'Read provider object again Copy status if present',
} as const;

export const deletionNodes = {
  start: 'Deleting consumer object',
  finalizer: 'Syncer finalizer present?',
  orphan: 'deletion-policy is Orphan?',
  readProvider: 'Read mapped provider object',
  owned: 'Provider copy exists and is ours?',
  deleteCopy: 'Request provider deletion Requeue after 2 seconds',
  release: 'Remove consumer syncer finalizer',
} as const;
