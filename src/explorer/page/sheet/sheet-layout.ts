/** A group of frames, as they lie on the sheet. */
export interface FrameGroup {
  readonly frames: number;
  readonly columns: number;
}

/**
 * The frame to which a key goes: left and right in their order, up and down to the one that lies above or below, in
 * the next group if need be.
 *
 * @param index of the frame where it begins, counted over all groups
 * @returns the index of another frame; `undefined` where the key goes nowhere
 */
export function findNextFrame(
  groups: readonly FrameGroup[],
  index: number,
  key: string,
): number | undefined {
  const total = groups.reduce((sum, { frames }) => sum + frames, 0);
  const next = {
    ArrowLeft: index - 1,
    ArrowRight: index + 1,
    ArrowUp: findVertical(groups, index, -1),
    ArrowDown: findVertical(groups, index, 1),
    Home: 0,
    End: total - 1,
  }[key];
  return next === undefined || next === index || next < 0 || next >= total ? undefined : next;
}

function findVertical(
  groups: readonly FrameGroup[],
  index: number,
  direction: 1 | -1,
): number | undefined {
  const filled = groups.filter(({ frames }) => frames > 0);
  let first = 0;
  for (const [position, { frames, columns }] of filled.entries()) {
    if (index >= first + frames) {
      first += frames;
      continue;
    }
    const place = index - first;
    const [row, column] = [Math.floor(place / columns), place % columns];
    const lastRow = Math.floor((frames - 1) / columns);
    const wanted = row + direction;
    if (wanted >= 0 && wanted <= lastRow) {
      return first + Math.min(wanted * columns + column, frames - 1);
    }
    const other = filled[position + direction];
    if (other === undefined) return undefined;
    // As far to the side as it was, by the width of the sheet.
    const side = Math.min(other.columns - 1, Math.floor((column * other.columns) / columns));
    if (direction === 1) return first + frames + Math.min(side, other.frames - 1);
    const otherLastRow = Math.floor((other.frames - 1) / other.columns);
    return first - other.frames + Math.min(otherLastRow * other.columns + side, other.frames - 1);
  }
  return undefined;
}
