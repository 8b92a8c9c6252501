/**
 * What a reconcile may end in, besides a thrown error. A closed set: lib/queue/settle.ts is the one place that acts on it.
 */
export type Outcome = Done | Wait;

/** Nothing more to do until the next event or sweep. */
export interface Done {
  readonly type: 'done';
  /** For the log: which box of the flowchart ended it. */
  readonly reason: string;
}

/**
 * Look again later. A wait is no failed attempt: it never dead-letters.
 * The delay doubles with every wait of one chain: `clamp(2 × last wait, first, max)`.
 */
export interface Wait {
  readonly type: 'wait';
  readonly reason: string;
  /** Seconds before the first look. */
  readonly firstSeconds: number;
  /** Seconds that the doubling stops at. */
  readonly maxSeconds: number;
}

export const done = (reason: string): Done => ({ type: 'done', reason });

export const wait = (reason: string, firstSeconds: number, maxSeconds: number): Wait => ({
  type: 'wait',
  reason,
  firstSeconds,
  maxSeconds,
});

/** A provider copy or a draining binding that is still going away (spec §7, §4). */
export const waitForDeletion = (reason: string): Wait => wait(reason, 2, 60);
/** A provider that does not answer (spec §2.3). */
export const waitForProvider = (reason: string): Wait => wait(reason, 2, 30);
/** A conflict whose blocker may go unnoticed (spec §7). */
export const waitForConflict = (reason: string): Wait => wait(reason, 60, 600);
/** A refusal by RBAC, for as long as it lasts (spec §7). */
export const waitForPermission = (reason: string): Wait => wait(reason, 30, 30);
