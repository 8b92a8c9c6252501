import type { Action, What } from './actions.ts';
import { deeds, unlessRefused, type Deed, type Stage } from './deeds.ts';
import { faultDeeds } from './deeds-faults.ts';
import { relatedDeeds } from './deeds-related.ts';
import { apis } from './setup.ts';

const all: Readonly<Record<What, Deed>> = { ...deeds, ...faultDeeds, ...relatedDeeds };

/** Does what a person would, and what goes wrong at a chosen place. */
export async function perform(stage: Stage, action: Action): Promise<void> {
  const consumer = stage.person.client(`${action.consumer}.test`);
  const provider = stage.person.client('provider.test');
  await unlessRefused(() => all[action.what]({ ...stage, action, consumer, provider, ref: apis[action.api] }));
}
