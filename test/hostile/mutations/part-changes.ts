import type { SeededRandom } from '../../support/seeded-random.ts';
import { changeBytes } from './byte-changes.ts';
import type { Part } from './part-codecs.ts';

/**
 * Changes a file's parts: one is changed, cut out, doubled, exchanged or renamed, at any depth.
 *
 * @param others parts of another file, of which one may be put in
 */
export function changeParts(
  parts: readonly Part[],
  others: readonly Part[],
  random: SeededRandom,
): Part[] {
  if (parts.length === 0) return [...others];
  const index = random.integer(parts.length);
  const part = parts[index];
  if (part === undefined) throw new Error('unreachable: the index is one of the parts');
  if (part.children !== undefined && part.children.length > 0 && random.integer(4) > 0) {
    const children = changeParts(part.children, others, random);
    return parts.with(index, { ...part, children });
  }
  switch (random.integer(12)) {
    case 0:
      return parts.toSpliced(index, 1);
    case 1:
      return parts.toSpliced(index, 0, ...Array(random.pick([1, 1, 2, 10, 300])).fill(part));
    case 2:
      return parts.toSpliced(index, 0, random.pick(others.length > 0 ? others : parts));
    case 3: {
      const other = random.integer(parts.length);
      return parts.with(index, parts[other] ?? part).with(other, part);
    }
    case 4:
      return parts.with(index, { ...part, tag: random.pick([...parts, ...others]).tag });
    default:
      return parts.with(index, { ...part, data: changeBytes(part.data, random) });
  }
}
