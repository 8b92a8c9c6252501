import { composeIn, type App } from './compose.ts';
import type { Container } from './container.ts';
import { closeContainers, containerFromEnvironment } from './from-environment.ts';

/** One in each container. */
const apps = new Map<Container, App>();

/** The whole application that the environment asks for: for the functions that reconcile, sweep and replay. */
export function appFromEnvironment(): App {
  const container = containerFromEnvironment();
  const app = apps.get(container) ?? composeIn(container);
  apps.set(container, app);
  return app;
}

/** Ends all applications of this process: for local runners that stop. */
export async function closeApps(): Promise<void> {
  const open = [...apps.values()];
  apps.clear();
  await Promise.all(open.map((app) => app.close()));
  closeContainers();
}
