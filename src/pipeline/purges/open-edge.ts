import { randomBytes } from 'node:crypto';
import { type EdgeName, EdgeTags, edgeRows } from '../../contract/edge-tags.ts';
import type { SharedObjects } from '../blocks/ports.ts';
import { EdgePurger, type EdgePurgerParts } from './edge-purger.ts';

/** Name of the object with the secret of all tags. */
const SECRET_NAME = 'tag-key';

const SECRET_BYTES = 32;

/** Margin for a response on its way to the edge, after the longest render, in milliseconds (contract §15). */
const ON_THE_WAY_MS = 30_000;

/** Parts of the edge, besides those that follow from its name. */
type EdgeParts = Omit<EdgePurgerParts, 'row' | 'tags' | 'secondRoundAfterMs'>;

/**
 * Opens tags and purges for the CDN in front.
 *
 * @param renderTimeoutMs deadline of a render, in milliseconds
 * @throws Error if the secret of the tags can be neither read nor made
 */
export async function openEdge(edge: EdgeName, renderTimeoutMs: number, parts: EdgeParts) {
  const tags = new EdgeTags(edge, await findSecret(parts.objects));
  const purger = new EdgePurger({
    ...parts,
    row: edgeRows[edge],
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
