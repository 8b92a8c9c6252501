/** The steps of the Connection controller, in the words of spec §2: no seed draws its chart. */
export const nodes = {
  start: 'Connection, Secret or export event or periodic reconciliation',
  exists: 'Connection exists?',
  deleting: 'Connection deleting?',
  finalizer: 'Cleanup finalizer already present?',
  addFinalizer: 'Add the cleanup finalizer',
  secret: 'Ensure the cleanup finalizer on the Secret',
  usable: 'Kubeconfig usable?',
  identity: 'Ask both clusters for their identity',
  pinned: 'Identities are the pinned ones?',
  pin: 'Pin both identities',
  heartbeat: 'Renew the heartbeat Lease',
  discovery: 'Discover what the provider exports',
  schemas: 'Install what pullPolicy asks for',
  autoBind: 'Maintain the ClusterBinding of autoBind',
  ready: 'Set Ready=True',
  notReady: 'Set Ready=False',
  status: 'Persist changed status and tell dependents',
} as const;

export const deletionNodes = {
  start: 'Deleting Connection',
  finalizer: 'Cleanup finalizer present?',
  autoBind: 'Request deletion of the managed ClusterBinding',
  grace: '8 seconds after the deletionTimestamp?',
  bindings: 'Any binding references the Connection?',
  instances: 'A CRD pinned to it has instances with our finalizer?',
  draining: 'Set Ready=False with DrainingBindings',
  secret: 'Who releases the Secret?',
  releaseSecret: 'Remove the cleanup finalizer from the Secret',
  release: 'Remove the cleanup finalizer from the Connection',
} as const;
