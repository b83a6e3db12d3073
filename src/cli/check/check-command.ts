import { type Config, ConfigError, readConfig } from '../../config/config.ts';
import { settingNames } from '../../config/settings.ts';
import { describeUnknownSetting } from '../../config/unknown-settings.ts';
import type { SigningKeys } from '../../contract/signing/signing-keys.ts';
import { type Command, exitStatus, type Terminal } from '../command.ts';
import { checkExternal } from './external-check.ts';
import { type Finding, fault, ok, warning, writeFinding } from './finding.ts';
import { checkOrigin } from './origin-check.ts';
import { checkResultStore } from './result-store-check.ts';
import { checkWorkers } from './worker-check.ts';

/** Checks whether the service would work with this configuration. */
export const checkCommand: Command = {
  summary: 'checks the configuration and the storage',
  operands: [],
  help: `
Prints a line for each thing that it looks at: ok, or FAULT with what follows
from it. It can run beside a service with the same settings. It looks at

  settings          all of them, as the service does at its start; of a name
                    that is none, but looks like one, it warns
  missing original  whether the storage says so, which is what makes a 404
  listing           whether what is there looks like originals
  reading           whether the first of them can be read
  clock             of S3: whether it agrees with the server's
  renderings        whether RESULT_STORE takes one, gives it back and removes it
  external keys     how many there are; only where one is set
  attachment keys   the same
  upload keys       the same
  external lookup   whether names of other sites are resolved, to addresses
                    that may be connected to
  workers           whether render processes start, and what they are kept from

Secrets are never shown. Exit status: 0 all is well; 1 there are faults; 78
settings are not valid, and nothing else was looked at.`,
  run: async (_operands, { environment, stdout, signal }) => {
    let config: Config;
    try {
      config = readConfig(environment);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      for (const line of error.message.split('\n')) writeFinding(stdout, fault('settings', line));
      return exitStatus.configuration;
    }
    let faults = 0;
    for await (const finding of checkAll(config, environment, signal)) {
      writeFinding(stdout, finding);
      if (finding.kind === 'fault') faults += 1;
    }
    return faults === 0 ? exitStatus.ok : exitStatus.fault;
  },
};

async function* checkAll(
  config: Config,
  environment: Terminal['environment'],
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  const set = settingNames.filter((name) => environment[name] !== undefined);
  yield ok('settings', set.length === 0 ? 'all have their defaults' : `valid: ${set.join(', ')}`);
  for (const unknown of config.unknownSettings) {
    yield warning('settings', describeUnknownSetting(unknown));
  }
  yield* checkOrigin(config, signal);
  yield await checkResultStore(config, signal);
  yield* checkKeys(config);
  yield* checkExternal(config, signal);
  yield await checkWorkers(config, signal);
}

/** Reports the number of signing keys of each kind that is set; never the keys. */
function* checkKeys({ external, attachments, relay }: Config): Generator<Finding> {
  if (external !== undefined) yield ok('external keys', describeSigners(external.keys));
  const { mode, signing } = attachments;
  if (signing !== undefined) {
    yield ok('attachment keys', `${describeSigners(signing.keys)} (ATTACHMENT_SIGNING=${mode})`);
  }
  // Only the platform signs uploads.
  if (relay !== undefined) yield ok('upload keys', `any of ${relay.keys.count} verifies`);
}

function describeSigners({ count }: SigningKeys): string {
  return count > 1 ? `the first signs; ${count - 1} more verify` : 'the first signs';
}
