/** What the bundle is made for, and the HTTP client in it needs: older ones end in a stack trace before anything is said. */
const NEEDED_MAJOR = 24;

/** Why the command cannot run under this Node, with the way out; undefined where it can. */
export function refusalOfNode(version: string): string | undefined {
  const major = Number(/^v(\d+)\./.exec(version)?.[1]);
  if (major >= NEEDED_MAJOR) return undefined;
  return `kbind-fleet needs Node ${NEEDED_MAJOR} or newer, and this is ${version}; npx kbind-fleet in the project's folder brings its own`;
}
