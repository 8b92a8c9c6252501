import type { FaultKind } from '../../support/faults/plan.ts';
import { describeAction, run, type Plan, type Result } from './run.ts';

const MOST_ATTEMPTS = 80;

/** Leaves out actions and kinds of faults for as long as the run still fails in the same way. */
export async function narrow(failed: Result): Promise<Result> {
  let best = failed;
  const attempts = { left: MOST_ATTEMPTS };
  const kindOf = (text: string | undefined): string =>
    (text ?? '')
      .replace(/^\d+(\.\d+)? ms: /, '')
      .replaceAll(/\d+/g, '')
      .slice(0, 24);
  const wanted = kindOf(failed.violations[0]);
  const tryPlan = async (plan: Plan): Promise<boolean> => {
    attempts.left -= 1;
    const result = await run(plan);
    const same = result.violations.some((text) => kindOf(text) === wanted);
    if (same) best = result;
    return same;
  };
  for (let size = Math.ceil(best.plan.history.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < best.plan.history.length && attempts.left > 0;) {
      const history = best.plan.history.filter((_, index) => index < from || index >= from + size);
      if (!(await tryPlan({ ...best.plan, history }))) from += size;
    }
  }
  if (!(await tryPlan({ ...best.plan, rate: 0 }))) {
    for (const kind of best.plan.kinds) {
      if (attempts.left <= 0) break;
      await tryPlan({ ...best.plan, kinds: best.plan.kinds.filter((each) => each !== kind) });
    }
  }
  return best;
}

/** What a person needs to look into a failure. */
export function report({ plan, violations, faults }: Result, title = 'violation'): string {
  return [
    `${title}: seed ${plan.seed}, fault rate ${plan.rate}, ticks ${plan.ticks}`,
    ...violations.map((text) => `  ! ${text}`),
    ...plan.history.map((action) => `    ${describeAction(action)}`),
    `  faults: ${plan.rate === 0 ? 'none' : [...faults].map(([kind, count]) => `${kind} ${count}`).join(', ')}`,
  ].join('\n');
}

/** The same for an assertion: nothing where nothing was wrong. */
export const reportOf = (result: Result, title?: string): string =>
  result.violations.length === 0 ? '' : report(result, title);

/** Adds runs up. */
export class Summary {
  readonly #faults = new Map<FaultKind, number>();
  readonly #sums = {
    runs: 0,
    failed: 0,
    reconciles: 0,
    requests: 0,
    writes: 0,
    invocations: 0,
    deadLetters: 0,
    cutShort: 0,
  };
  readonly #startedAt = performance.now();

  get failed(): number {
    return this.#sums.failed;
  }

  add(result: Result): void {
    this.#sums.runs += 1;
    if (result.violations.length > 0) this.#sums.failed += 1;
    for (const name of ['reconciles', 'requests', 'writes', 'invocations', 'deadLetters', 'cutShort'] as const)
      this.#sums[name] += result[name];
    for (const [kind, count] of result.faults) this.#faults.set(kind, (this.#faults.get(kind) ?? 0) + count);
  }

  toString(): string {
    const { runs, failed, reconciles, requests, writes, invocations, deadLetters, cutShort } = this.#sums;
    const seconds = Math.round((performance.now() - this.#startedAt) / 1000);
    const kinds = [...this.#faults].sort(([, a], [, b]) => b - a).map(([kind, count]) => `${kind} ${count}`);
    return [
      `${runs} runs in ${seconds} s, ${failed} with violations`,
      `${reconciles} reconciles in ${invocations} invocations, ${requests} requests, ${writes} writes; ${deadLetters} messages crashed too often, ${cutShort} creates cut short`,
      `${[...this.#faults.values()].reduce((sum, count) => sum + count, 0)} faults: ${kinds.join(', ')}`,
    ].join('\n');
  }
}
