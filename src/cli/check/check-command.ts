import { type Config, ConfigError, readConfig } from '../../config/config.ts';
import { settingNames } from '../../config/settings.ts';
import { formatCauses } from '../../contract/errors.ts';
import type { SigningKeys } from '../../contract/signing/signing-keys.ts';
import { unlessAborted } from '../../pipeline/abort.ts';
import { probeConditions } from '../../pipeline/blocks/ports.ts';
import type { Lane } from '../../pipeline/ports.ts';
import { openSharedObjects } from '../../storage/open-storage.ts';
import { AddressGuard } from '../../storage/remote/guard.ts';
import { createResolver } from '../../storage/remote/resolver.ts';
import { type Command, exitStatus, formatByteSize, type Terminal } from '../command.ts';
import { type Finding, fault, ok, warning, writeFinding } from './finding.ts';
import { checkOrigin } from './origin-check.ts';
import { checkPlatform } from './platform-check.ts';
import { checkResultStore } from './result-store-check.ts';
import { checkWorkers } from './worker-check.ts';

/** Always exists (RFC 2606 §3). */
const USUAL_NAME = 'example.com';

export const checkCommand: Command = {
  summary: 'checks the configuration and the storage',
  operands: [],
  options: { platform: '' },
  help: `
Prints a line for each check: ok, WARN, or FAULT with its consequence. You can
run it next to a running service with the same settings. It checks

  settings          all of them, like the service at startup; warns of an
                    unknown name that resembles a setting, and of a setting
                    without effect
  memory            how the memory of the machine or container is divided;
                    warns if the settings need more
  missing original  whether the storage reports it as missing, not as a
                    failure: clients get a 404 only then
  listing           whether files in the storage have keys of originals
  reading           whether the first original can be read
  renderings        whether RESULT_STORE can write, read and remove a file
  blocks            whether the list of BLOCKLIST can be written conditionally;
                    only if BLOCKLIST is set
  external keys     number of keys; only if there are any
  attachment keys   the same
  upload keys       the same
  upload metadata   whether uploads lose it (RELAY_STRIP_METADATA)
  external lookup   whether names of other sites are resolved, to addresses
                    that may be connected to
  workers           whether render processes start, and how they are confined
  posters           whether videos have posters, by which program and version,
                    or why not

With --platform, it also acts as the platform's API, on ports of this
machine, with the keys and storages of the service (docs/platform.md):

  platform, links, purges   whether their settings are complete
  uploads           whether one is signed and stored, as darkroom-check.png in
                    the bucket or directory of uploads; it is removed afterwards
  metadata          whether the metadata of the upload is correct
  thumbnail         whether the upload is rendered
  signed reads      whether the first attachment is read by a signed path
  own URLs          the same by a link to its URL below PUBLIC_URLS

Secrets are never shown. Exit status: 0 no faults; 1 faults; 78 settings are
not valid, and nothing else was checked.`,
  run: async (_operands, { environment, stdout, signal }, { platform = false }) => {
    let config: Config;
    try {
      config = readConfig(environment);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      for (const line of error.message.split('\n')) writeFinding(stdout, fault('settings', line));
      for (const { message } of error.warnings) writeFinding(stdout, warning('settings', message));
      return exitStatus.configuration;
    }
    let faults = 0;
    for await (const finding of checkAll(config, environment, platform === true, signal)) {
      writeFinding(stdout, finding);
      if (finding.kind === 'fault') faults += 1;
    }
    return faults === 0 ? exitStatus.ok : exitStatus.failure;
  },
};

async function* checkAll(
  config: Config,
  environment: Terminal['environment'],
  isPlatform: boolean,
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  const set = settingNames.filter((name) => environment[name] !== undefined);
  yield ok('settings', set.length === 0 ? 'all have their defaults' : `valid: ${set.join(', ')}`);
  for (const { message } of [...config.unknownSettings, ...config.unusedSettings]) {
    yield warning('settings', message);
  }
  yield checkMemory(config);
  yield* checkOrigin(config, signal);
  yield await checkResultStore(config, signal);
  yield* checkBlocks(config, signal);
  yield* checkKeys(config);
  yield* checkExternal(config, signal);
  yield* checkWorkers(config, signal);
  if (isPlatform) yield* await checkPlatform(config, signal);
}

function checkMemory({ memory, renderer }: Config): Finding {
  const { workers, memoryBytes } = renderer;
  const describe = (lane: Lane, renders: string): string[] => {
    if (workers[lane] === 0) return [];
    return [`${workers[lane]} × ${formatByteSize(memoryBytes[lane])} for ${renders}`];
  };
  const parts = [
    `results ${formatByteSize(memory.cacheBytes)}`,
    `cached originals ${formatByteSize(memory.cachedOriginalsBytes)}`,
    `originals in use ${formatByteSize(memory.originalsBytes)}`,
    `uploads ${formatByteSize(memory.uploadsBytes)}`,
    ...describe('light', workers.heavy === 0 ? 'all renders' : 'short renders'),
    ...describe('heavy', 'long renders'),
  ].join(', ');
  const total = formatByteSize(memory.totalBytes);
  if (!memory.isShort) return ok('memory', `${total}: ${parts}`);
  const needed = formatByteSize(memory.neededBytes);
  return warning('memory', `up to ${needed} are needed, but only ${total} are available: ${parts}`);
}

async function* checkBlocks({ blocklist }: Config, signal: AbortSignal): AsyncGenerator<Finding> {
  if (blocklist === undefined) return;
  try {
    const probing = openSharedObjects(blocklist.location).then(probeConditions);
    await unlessAborted(probing, signal);
    yield ok('blocks', 'the list can be written conditionally');
  } catch (error) {
    signal.throwIfAborted();
    yield fault('blocks', `the list cannot be used${formatCauses(error)}`);
  }
}

/** Reports the number of keys, never the keys. */
function* checkKeys({ external, attachments, relay }: Config): Generator<Finding> {
  if (external !== undefined) yield ok('external keys', describeSigners(external.keys));
  const { mode, signing } = attachments;
  if (signing !== undefined) {
    yield ok('attachment keys', `${describeSigners(signing.keys)} (ATTACHMENT_SIGNING=${mode})`);
  }
  // Only the platform signs uploads.
  if (relay === undefined) return;
  yield ok('upload keys', `any of ${relay.keys.count} verifies`);
  yield ok(
    'upload metadata',
    relay.stripsMetadata
      ? 'is removed, unless s of the capability is false (RELAY_STRIP_METADATA=true)'
      : 'is stored as sent, unless s of the capability is true (RELAY_STRIP_METADATA=false)',
  );
}

function describeSigners({ count }: SigningKeys): string {
  return count > 1 ? `the first signs; ${count - 1} more verify` : 'the first signs';
}

/** Resolves a name, but fetches nothing. */
async function* checkExternal({ external }: Config, signal: AbortSignal): AsyncGenerator<Finding> {
  if (external === undefined) return;
  const { dnsServers = [], allowedHosts } = external;
  const name = allowedHosts.find((host) => /\.\w*[a-z]/.test(host)) ?? USUAL_NAME;
  const resolver = createResolver(dnsServers);
  try {
    const resolved = await unlessAborted(resolver.resolve(name), signal);
    const late = resolved.late && (await unlessAborted(resolved.late, signal));
    const addresses = [...resolved.addresses, ...(late ?? [])];
    const guard = new AddressGuard(external);
    const refused = addresses.find((address) => guard.findRejection(address) !== undefined);
    yield refused === undefined
      ? ok('external lookup', `${name} has ${addresses.join(', ')}`)
      : fault(
          'external lookup',
          `${name} has the address ${refused}, which must not be connected to (${guard.findRejection(refused)})`,
        );
  } catch (error) {
    signal.throwIfAborted();
    const servers = dnsServers.length === 0 ? "the system's servers" : dnsServers.join(', ');
    yield fault(
      'external lookup',
      `${name} is not resolved by ${servers}, so nothing of other sites would be shown${formatCauses(error)}`,
    );
  }
}
