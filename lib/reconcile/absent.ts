import { done, type Outcome } from '../model/outcome.ts';
import type { World } from './world.ts';

/**
 * Work ends because something is not there on the consumer: an object, a marker, readiness. Another cluster behind its address
 * would say the same, and the event would be lost with it: absent is only what the consumer, asked once more who it is, does
 * not have (spec §2.3, §8.4).
 * @throws KbindError class `identity`, which is retried
 */
export async function doneAsAbsent(world: World, reason: string): Promise<Outcome> {
  await world.consumer.confirmIdentity(0);
  return done(reason);
}
