/**
 * The one place of the local runner that touches the process's environment: handlers read it, as they do in Lambda.
 * All functions of a stack share this process, so the values are set before each invocation; handlers read them before
 * their first await.
 */
export interface LambdaEnvironment {
  /** Makes these values the process's environment. */
  enter(): void;
  /** Puts back what was there before. */
  leave(): void;
}

/** What a developer's own shell may hold and would win over the emulator's credentials. */
const HIDDEN = ['AWS_PROFILE', 'AWS_SESSION_TOKEN', 'AWS_DEFAULT_REGION', 'AWS_ENDPOINT_URL'];

export function lambdaEnvironment(values: Readonly<Record<string, string>>): LambdaEnvironment {
  const names = [...Object.keys(values), ...HIDDEN];
  const before = new Map(names.map((name) => [name, process.env[name]]));
  return {
    enter() {
      for (const name of HIDDEN) delete process.env[name];
      Object.assign(process.env, values);
    },
    leave() {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    },
  };
}
