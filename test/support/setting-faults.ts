import { ConfigError, readConfig } from '../../src/config/config.ts';

/** Lists the faults of a configuration, one a line; empty if it is valid. */
export function faultsOf(environment: Readonly<Record<string, string>>): string[] {
  try {
    readConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n');
    throw error;
  }
  return [];
}
