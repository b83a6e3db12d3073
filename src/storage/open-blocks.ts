import { randomBytes } from 'node:crypto';
import { setTimeout as sleepFor } from 'node:timers/promises';
import { type Config, ConfigError } from '../config/config.ts';
import { EdgeTags, edgeRows } from '../contract/edge-tags.ts';
import { formatCauses } from '../contract/errors.ts';
import { BlockList } from '../pipeline/blocks/block-list.ts';
import type { SharedObjects } from '../pipeline/blocks/ports.ts';
import { EdgePurger, type EdgePurgerParts, type Sleep } from '../pipeline/purges/edge-purger.ts';
import { openEdgeApi } from './edge/edge-api.ts';
import { openSharedObjects } from './open-storage.ts';

const SECRET_NAME = 'tag-key';

const SECRET_BYTES = 32;

/** Margin for a response on its way to the edge, after the longest render, in milliseconds (contract §15). */
const ON_THE_WAY_MS = 30_000;

type BlockTools = Pick<EdgePurgerParts, 'meter' | 'clock' | 'wallClock' | 'log'>;

/** Replacements for tests. */
interface BlockDoubles {
  readonly objects?: SharedObjects;
  readonly sleep?: Sleep;
}

const sleepUnlessAborted: Sleep = (durationMs, signal) =>
  sleepFor(durationMs, undefined, { signal }).catch(() => undefined);

/** Opens the list of blocks, and the CDN in front, if configured. @throws ConfigError if the list cannot be used */
export async function openBlocks(
  { edge, blocklist, renderLimits }: Pick<Config, 'edge' | 'blocklist' | 'renderLimits'>,
  { objects: given, sleep = sleepUnlessAborted }: BlockDoubles,
  tools: BlockTools,
) {
  if (blocklist === undefined) return {};
  try {
    const objects = given ?? (await openSharedObjects(blocklist));
    const parts = { ...tools, objects, sleep };
    return {
      edge: edge && (await openEdge(edge, renderLimits.timeoutMs, parts)),
      list: await BlockList.open({ objects, pollMs: blocklist.pollMs, ...tools }),
    };
  } catch (error) {
    throw new ConfigError(`BLOCKLIST: the list cannot be used${formatCauses(error)}`);
  }
}

async function openEdge(
  edge: NonNullable<Config['edge']>,
  renderTimeoutMs: number,
  parts: Omit<EdgePurgerParts, 'api' | 'row' | 'tags' | 'secondRoundAfterMs'>,
) {
  const tags = new EdgeTags(edge.edge, await findSecret(parts.objects));
  const purger = new EdgePurger({
    ...parts,
    api: await openEdgeApi(edge),
    row: edgeRows[edge.edge],
    tags,
    secondRoundAfterMs: renderTimeoutMs + ON_THE_WAY_MS,
  });
  return { tags, purger };
}

/** Reads the secret, which the first replica makes. */
async function findSecret(objects: SharedObjects): Promise<Uint8Array> {
  const made = randomBytes(SECRET_BYTES);
  const found = await objects.read(SECRET_NAME);
  if (found === undefined && (await objects.write(SECRET_NAME, made, 'absent')) !== undefined) {
    return made;
  }
  // Another replica may have been first.
  const secret = found ?? (await objects.read(SECRET_NAME));
  if (secret?.bytes.length !== SECRET_BYTES) throw new Error('The secret of the tags is damaged.');
  return secret.bytes;
}
