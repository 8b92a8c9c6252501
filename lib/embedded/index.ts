export { startEmbeddedCluster } from './cluster.ts';
export type { EmbeddedCluster, EmbeddedClusterOptions, EmbeddedUser, UserOptions } from './cluster.ts';
export type { DenyRule } from './auth/rules.ts';
export type { ObservedRequest } from './server.ts';
