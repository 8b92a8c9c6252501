import { resources } from '../../../lib/model/api.ts';
import type { RequestFault } from '../../support/faults/plan.ts';
import {
  addressOf,
  clusterBinding,
  collectionOf,
  createInstance,
  editInstance,
  remove,
  removeInstance,
  unlessRefused,
  type Call,
  type Deed,
} from './deeds.ts';
import { NAMESPACES } from './setup.ts';

/**
 * Faults at a chosen place, with the step that meets them: what would need a rare draw of several at once. Everything that
 * still lies in wait is taken away when faults stop.
 */
const READ_FAULTS: readonly RequestFault[] = ['plain-404', 'plain-404', 'error-500', 'error-503', 'page', 'half', 'timeout-before', 'throttled']; // prettier-ignore
const AFTER_A_BATCH_MS = 1_000;
const ON_ITS_WAY_MS = 3_000;
const A_MINUTE_MS = 60_000;
/** Longer than anything is believed, shorter than a client waits for the head of an answer. */
const LONG_READ_MS = 9_500;

const digit = ({ action: { value } }: Call, place: number): number => Math.floor(value / 10 ** place) % 10;

/** A step of a person's that the product answers to at once. */
const provoke: Deed = (call) =>
  unlessRefused(
    () => [editInstance, editInstance, removeInstance, createInstance][digit(call, 0) % 4]?.(call) ?? Promise.resolve(),
  );

const textsOf = ({ action: { api, key } }: Call): string[] => [
  '"type":"reconcile"',
  `"api":"${api}"`,
  ...(key.namespace === undefined ? [] : [`"namespace":"${key.namespace}"`]),
  `"name":"${key.name}"`,
];

const pass = ({ network }: Call, ms: number): Promise<undefined> => network.time.sleep(ms).then(() => undefined);

async function unbindAll({ consumer }: Call): Promise<void> {
  await unlessRefused(() => remove(consumer, resources.clusterBindings, clusterBinding));
  for (const namespace of NAMESPACES)
    await unlessRefused(() => remove(consumer, resources.bindings, { namespace, name: 'binding' }));
}

export const faultDeeds = {
  'reads of the copy fail': async (call) => {
    const { network, ref, action } = call;
    const fault = READ_FAULTS[digit(call, 1) % READ_FAULTS.length] ?? 'plain-404';
    const spring = (): Promise<RequestFault> => Promise.resolve(fault);
    const long = digit(call, 3) === 9;
    const times = long ? Number.POSITIVE_INFINITY : 1 + (digit(call, 2) % 4);
    const until = long ? network.time.elapsed() + A_MINUTE_MS : Number.POSITIVE_INFINITY;
    network.setTrap({
      cluster: 'provider',
      address: addressOf(ref, action.key),
      method: 'GET',
      moment: 'request',
      times,
      until,
      spring,
    });
    await provoke(call);
  },
  'address leads elsewhere': async (call) => {
    const { network, action } = call;
    const host = new RegExp(`^${action.consumer}-.*\\.provider\\.test$`);
    network.lead(host, 'impostor');
    network.time.after(1_000 + digit(call, 1) * 2_500, () => network.lead(host, 'provider'));
    await provoke(call);
  },
  'queue refuses': async (call) => {
    const texts = digit(call, 1) < 7 ? textsOf(call) : ['"type":"sweep"'];
    const fault = digit(call, 2) < 8 ? 'send-refused' : 'send-unanswered';
    call.queues.aim({ texts, fault, times: 1 + (digit(call, 3) % 3) });
    await provoke(call);
  },
  'kill forwarder': (call) => {
    call.network.faults.count('forwarder-killed');
    call.cell.killForwarder(call.action.consumer);
    return provoke(call);
  },
  /** A forwarder starts anew, and the provider does not answer it for a while. */
  'watch of copies fails': (call) => {
    const { network, ref, cell, action } = call;
    for (const watch of [false, true])
      network.setTrap({
        cluster: 'provider',
        address: `/${ref.resource}`,
        method: 'GET',
        watch,
        who: 'forwarder',
        moment: 'request',
        times: Number.POSITIVE_INFINITY,
        until: network.time.elapsed() + 8_000 + digit(call, 1) * 2_000,
        spring: () => Promise.resolve('error-503'),
      });
    network.faults.count('forwarder-killed');
    cell.killForwarder(action.consumer);
    return Promise.resolve();
  },
  /** The instance goes, and a second container concludes that it has no copy, while the copy is on its way. */
  'delete before create': async (call) => {
    const { network, ref, action, cell } = call;
    network.setTrap({
      cluster: 'provider',
      address: collectionOf(ref, action.key.namespace),
      method: 'POST',
      moment: 'request',
      spring: async () => {
        await unlessRefused(() => removeInstance(call));
        return pass(call, ON_ITS_WAY_MS);
      },
    });
    cell.doubleNext(textsOf(call), AFTER_A_BATCH_MS);
    await unlessRefused(() => createInstance(call));
  },
  'unbind after read': async (call) => {
    const { network, ref, action } = call;
    network.setTrap({
      cluster: 'provider',
      address: addressOf(ref, action.key),
      method: 'GET',
      moment: 'answer',
      spring: async () => {
        await unbindAll(call);
        return pass(call, LONG_READ_MS);
      },
    });
    await provoke(call);
  },
} as const satisfies Readonly<Record<string, Deed>>;
