/** The flowchart nodes that a reconcile passed, each with its answer: for logs, dead letters and `explain`. */
export interface TraceStep {
  /** Text of the node as in the seed's chart. */
  readonly node: string;
  readonly answer?: string | undefined;
}

/** Records the path; a decision returns its own answer so that it can stand in an `if`. */
export class Trace {
  readonly #steps: TraceStep[] = [];

  /** Passes a box. */
  step(node: string, answer?: string): void {
    this.#steps.push(answer === undefined ? { node } : { node, answer });
  }

  /** Passes a yes/no diamond. */
  decide(node: string, answer: boolean): boolean {
    this.step(node, answer ? 'yes' : 'no');
    return answer;
  }

  get steps(): readonly TraceStep[] {
    return this.#steps;
  }

  /** One line per step, `node → answer`. */
  lines(): string[] {
    return this.#steps.map(({ node, answer }) => (answer === undefined ? node : `${node} → ${answer}`));
  }
}
