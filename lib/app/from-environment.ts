import { compose, type App } from './compose.ts';
import { readConfig, type Config } from './config.ts';

/** One application per configuration and container: warm invocations share connections and caches. */
const apps = new Map<string, App>();

/**
 * The application that the environment asks for, made at the first event. A local runner may start again in the same process
 * with another environment: then it is another one.
 * @throws KbindError class `misconfigured` that names every problem of the configuration at once
 */
export function appFromEnvironment(): App {
  const config: Config = readConfig();
  const key = JSON.stringify(config);
  const app = apps.get(key) ?? compose(config);
  apps.set(key, app);
  return app;
}

/** Ends all applications of this process: for local runners that stop. */
export async function closeApps(): Promise<void> {
  const open = [...apps.values()];
  apps.clear();
  await Promise.all(open.map((app) => app.close()));
}
