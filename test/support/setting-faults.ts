import { ConfigError, readConfig } from '../../src/config/config.ts';

/** The faults of a configuration, a line each; none if it is right. */
export function faultsOf(environment: Readonly<Record<string, string>>): string[] {
  try {
    readConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n');
    throw error;
  }
  return [];
}
