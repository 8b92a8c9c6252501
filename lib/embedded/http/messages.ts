/** How a field is encoded. */
export interface Field {
  readonly name: string;
  readonly type: 'string' | 'int' | 'bool' | 'bytes' | 'json' | 'raw' | 'time' | 'microtime' | Message;
  readonly repeated?: boolean;
  readonly map?: boolean;
}

/** A protobuf message, by field number. */
export interface Message {
  readonly [number: number]: Field;
}

const text = (name: string): Field => ({ name, type: 'string' });
const int = (name: string): Field => ({ name, type: 'int' });
const bool = (name: string): Field => ({ name, type: 'bool' });
const time = (name: string): Field => ({ name, type: 'time' });
const micro = (name: string): Field => ({ name, type: 'microtime' });
const message = (name: string, type: Message): Field => ({ name, type });
const list = (name: string, type: Field['type']): Field => ({ name, type, repeated: true });
const map = (name: string, type: Field['type']): Field => ({ name, type, map: true });

const OWNER: Message = {
  1: text('kind'),
  3: text('name'),
  4: text('uid'),
  5: text('apiVersion'),
  6: bool('controller'),
  7: bool('blockOwnerDeletion'),
};

const MANAGED: Message = {
  1: text('manager'),
  2: text('operation'),
  3: text('apiVersion'),
  4: time('time'),
  6: text('fieldsType'),
  7: message('fieldsV1', { 1: { name: 'Raw', type: 'json' } }),
  8: text('subresource'),
};

const META: Message = {
  1: text('name'),
  2: text('generateName'),
  3: text('namespace'),
  5: text('uid'),
  6: text('resourceVersion'),
  7: int('generation'),
  8: time('creationTimestamp'),
  9: time('deletionTimestamp'),
  10: int('deletionGracePeriodSeconds'),
  11: map('labels', 'string'),
  12: map('annotations', 'string'),
  13: list('ownerReferences', OWNER),
  14: list('finalizers', 'string'),
  17: list('managedFields', MANAGED),
};

const REFERENCE: Message = {
  1: text('kind'),
  2: text('namespace'),
  3: text('name'),
  4: text('uid'),
  5: text('apiVersion'),
  6: text('resourceVersion'),
  7: text('fieldPath'),
};

const EVENT: Message = {
  1: message('metadata', META),
  2: message('involvedObject', REFERENCE),
  3: text('reason'),
  4: text('message'),
  5: message('source', { 1: text('component'), 2: text('host') }),
  6: time('firstTimestamp'),
  7: time('lastTimestamp'),
  8: int('count'),
  9: text('type'),
  10: micro('eventTime'),
  11: message('series', { 1: int('count'), 2: micro('lastObservedTime') }),
  12: text('action'),
  13: message('related', REFERENCE),
  14: text('reportingComponent'),
  15: text('reportingInstance'),
};

const LEASE_SPEC: Message = {
  1: text('holderIdentity'),
  2: int('leaseDurationSeconds'),
  3: micro('acquireTime'),
  4: micro('renewTime'),
  5: int('leaseTransitions'),
  6: text('strategy'),
  7: text('preferredHolder'),
};

const ATTRIBUTES: Message = {
  1: text('namespace'),
  2: text('verb'),
  3: text('group'),
  4: text('version'),
  5: text('resource'),
  6: text('subresource'),
  7: text('name'),
};

const ACCESS: Message = {
  1: message('resourceAttributes', ATTRIBUTES),
  2: message('nonResourceAttributes', { 1: text('path'), 2: text('verb') }),
};

/** The kinds that clients send as protobuf, as Kubernetes' generated.proto files number their fields. */
export const MESSAGES: Readonly<Record<string, Message>> = {
  Namespace: {
    1: message('metadata', META),
    2: message('spec', { 1: list('finalizers', 'string') }),
    3: message('status', { 1: text('phase') }),
  },
  ConfigMap: {
    1: message('metadata', META),
    2: map('data', 'string'),
    3: map('binaryData', 'bytes'),
    4: bool('immutable'),
  },
  Secret: {
    1: message('metadata', META),
    2: map('data', 'bytes'),
    3: text('type'),
    4: map('stringData', 'string'),
    5: bool('immutable'),
  },
  Event: EVENT,
  Lease: { 1: message('metadata', META), 2: message('spec', LEASE_SPEC) },
  SelfSubjectAccessReview: { 1: message('metadata', META), 2: message('spec', ACCESS) },
  SelfSubjectReview: { 1: message('metadata', META) },
  DeleteOptions: {
    1: int('gracePeriodSeconds'),
    2: message('preconditions', { 1: text('uid'), 2: text('resourceVersion') }),
    3: bool('orphanDependents'),
    4: text('propagationPolicy'),
    5: list('dryRun', 'string'),
  },
};
