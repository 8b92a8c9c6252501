/** The nodes of the managed-CRD controller's flowchart, in the seed's words. */
export const nodes = {
  start: 'Managed CRD or Connection event',
  crd: 'CRD exists and is not deleting?',
  connection: 'Connection Ready and localClusterUID set?',
  engaged: 'Provider client and cache engaged?',
  current: 'Existing syncer has current generation and the same provider instance?',
  stopOld: 'Stop the previous syncer',
  version: 'Choose storage or served version Build consumer informer and instance controller',
  watches: 'Watch consumer and provider instances Watch bindings covering this API',
  run: 'Start controller and informer Wait for cache sync and record syncer',
  stopSyncer: 'Stop existing syncer',
  waitProvider: 'Stop existing syncer Requeue after 2 seconds',
  stop: 'Stop',
} as const;
