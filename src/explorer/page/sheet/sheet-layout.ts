export interface FrameGroup {
  readonly frames: number;
  readonly columns: number;
}

/**
 * Returns the frame to which a key moves: left and right in order, up and down to the frame above or below, perhaps in
 * the next group.
 *
 * @param index of the current frame, counted over all groups
 * @returns the index of another frame; `undefined` if the key does not move
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
  const rows = listRows(groups);
  const position = rows.findIndex(({ first, frames }) => index < first + frames);
  const [here, there] = [rows[position], rows[position + direction]];
  if (here === undefined || there === undefined) return undefined;
  // The horizontal position stays, relative to the width of the sheet.
  const side = Math.floor(((index - here.first) * there.columns) / here.columns);
  return there.first + Math.min(side, there.frames - 1);
}

/** Lists the rows of all groups, with the index of each row's first frame. */
function listRows(groups: readonly FrameGroup[]) {
  const rows: (FrameGroup & { readonly first: number })[] = [];
  let first = 0;
  for (const { frames, columns } of groups) {
    for (let left = frames; left > 0; left -= columns) {
      const inRow = Math.min(left, columns);
      rows.push({ first, frames: inRow, columns });
      first += inRow;
    }
  }
  return rows;
}
