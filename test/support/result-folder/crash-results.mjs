/** How many addresses the writer of the crash tests has. */
export const CRASH_ADDRESSES = 200;

/** The address that the writer gives its rendering of a turn. */
export function crashAddressOf(turn) {
  const number = turn % CRASH_ADDRESSES;
  const originKey = `avatars/${number % 7}/${number}`;
  return { originKey, key: `${originKey}?width=64`, originalEtag: 'e1', release: 'r1' };
}

/** The body of a turn: its number, then one byte again and again, for a length of its own. */
export function crashBodyOf(turn) {
  const body = Buffer.alloc(8 + ((turn * 7_919) % 300_000), turn & 0xff);
  body.writeUInt32BE(turn, 0);
  return body;
}
