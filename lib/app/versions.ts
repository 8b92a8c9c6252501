import manifest from '../../package.json' with { type: 'json' };

/** What runs here, for dead letters. */
export const versions: Readonly<Record<string, string>> = { [manifest.name]: manifest.version };
