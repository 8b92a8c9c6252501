import { Logger as Powertools } from '@aws-lambda-powertools/logger';
import type { Logger, LogFields } from '../model/log.ts';
import type { Config } from './config.ts';

/** One JSON object per line on standard output, through Powertools. */
export function createLogger(config: Pick<Config, 'logLevel' | 'installation' | 'stage'>): Logger {
  const { logLevel, installation, stage } = config;
  return adapt(new Powertools({ logLevel, serviceName: installation, persistentKeys: { stage } }), {});
}

function adapt(powertools: Powertools, fixed: LogFields): Logger {
  const line = (fields: LogFields | undefined): Record<string, unknown> => ({ ...fixed, ...fields });
  return {
    debug: (message, fields) => powertools.debug(message, line(fields)),
    info: (message, fields) => powertools.info(message, line(fields)),
    warn: (message, fields) => powertools.warn(message, line(fields)),
    error: (message, fields) => powertools.error(message, line(fields)),
    child: (fields) => adapt(powertools, { ...fixed, ...fields }),
  };
}
