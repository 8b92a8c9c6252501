/** The nodes of the binding controllers' two flowcharts, in the seed's words. */
export const nodes = {
  start: 'Binding or Connection event or periodic reconciliation',
  getBinding: 'Get binding',
  exists: 'Binding exists?',
  connection: 'Referenced Connection exists and is Ready?',
  pending: 'Set Ready=False with Pending',
  provider: 'Build provider client from Connection credentials',
  schemas: 'For each requested API Check export and process its schema',
  counts: 'Record boundAPIs and schema hashes Count instance conflict annotations',
  missing: 'Any APIs not exported?',
  notExported: 'Set Ready=False with APINotExported',
  waiting: 'Waiting for an OpenAPI-source consumer CRD?',
  related: 'Sync selected related Secrets and ConfigMaps Remove copies that no longer match',
  conditions: 'Update Conflicts Set Synced=True and Ready=True',
  status: 'Persist changed status Requeue after 30 seconds',
  stop: 'Stop',
} as const;

export const deletionNodes = {
  start: 'Deleting binding with cleanup finalizer',
  provider: 'Try to obtain provider credentials',
  nextApi: 'More APIs to clean up?',
  covered: 'Another non-deleting binding lists this API?',
  schema: 'Consumer CRD provides a usable API version?',
  drain: 'Drain instances in scope Release their syncer finalizers',
  clusterBinding: 'ClusterBinding?',
  removeCrd: 'Delete consumer CRD',
  related: 'Delete related-resource copies owned by this binding',
  release: 'Remove binding cleanup finalizer',
  stop: 'Stop',
} as const;
