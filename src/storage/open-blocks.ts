import { randomBytes } from 'node:crypto';
import { setTimeout as sleepFor } from 'node:timers/promises';
import { type Config, ConfigError } from '../config/config.ts';
import { CdnTags, cdnRows } from '../contract/cdn-tags.ts';
import { formatCauses } from '../contract/errors.ts';
import { BlockList } from '../pipeline/blocks/block-list.ts';
import type { SharedObjects } from '../pipeline/blocks/ports.ts';
import { CdnPurger, type Sleep } from '../pipeline/cdn/cdn-purger.ts';
import { PurgeQueue } from '../pipeline/cdn/purge-queue.ts';
import type { Tools } from '../pipeline/meter.ts';
import { openCdnApi } from './cdn/cdn-api.ts';
import { openSharedObjects } from './open-storage.ts';

const SECRET_NAME = 'tag-key';

const SECRET_BYTES = 32;

/** Margin for a response in transit to the CDN, after the longest render (contract §15). */
const TRANSIT_MS = 30_000;

const sleepUnlessAborted: Sleep = (durationMs, signal) =>
  sleepFor(durationMs, undefined, { signal }).catch(() => undefined);

/** Opens the block list and the CDN in front, if configured. @throws ConfigError if the list cannot be used */
export async function openBlocks(
  { cdn, blocklist, renderLimits }: Pick<Config, 'cdn' | 'blocklist' | 'renderLimits'>,
  doubles: { readonly objects?: SharedObjects; readonly sleep?: Sleep },
  tools: Tools,
) {
  if (blocklist === undefined) return {};
  try {
    const { sleep = sleepUnlessAborted } = doubles;
    const objects = doubles.objects ?? (await openSharedObjects(blocklist.location));
    const secondRoundAfterMs = renderLimits.timeoutMs + TRANSIT_MS;
    return {
      cdn: cdn && (await openCdn(cdn, secondRoundAfterMs, objects, sleep, tools)),
      list: await BlockList.open(objects, blocklist.pollMs, tools),
    };
  } catch (error) {
    throw new ConfigError(`BLOCKLIST: the list cannot be used${formatCauses(error)}`);
  }
}

async function openCdn(
  cdn: NonNullable<Config['cdn']>,
  secondRoundAfterMs: number,
  objects: SharedObjects,
  sleep: Sleep,
  tools: Tools,
) {
  const tags = new CdnTags(cdn.name, await readOrCreateSecret(objects));
  const api = await openCdnApi(cdn);
  const front = { api, row: cdnRows[cdn.name], tags, secondRoundAfterMs };
  const queue = new PurgeQueue(objects, tools);
  return { tags, purger: new CdnPurger(front, queue, sleep, tools) };
}

/** Reads the secret of the CDN tags, which the first replica creates. */
async function readOrCreateSecret(objects: SharedObjects): Promise<Uint8Array> {
  const created = randomBytes(SECRET_BYTES);
  const found = await objects.read(SECRET_NAME);
  if (found === undefined && (await objects.write(SECRET_NAME, created, 'absent')) !== undefined) {
    return created;
  }
  const secret = found ?? (await objects.read(SECRET_NAME));
  if (secret?.bytes.length !== SECRET_BYTES)
    throw new Error('The secret of the CDN tags is damaged.');
  return secret.bytes;
}
