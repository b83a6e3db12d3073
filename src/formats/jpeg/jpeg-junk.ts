const START_OF_SCAN = 0xda;

/**
 * Drops the junk that stands between the segments of a JPEG before its first scan, so that libjpeg
 * has nothing harmless to warn of, and what it still warns of is real. Bytes that cannot be walked
 * come back as they are.
 *
 * @param jpeg begins with the two bytes of SOI
 * @returns the same bytes, or a copy without the junk (ITU-T T.81 B.1.1.2: markers and fill bytes)
 */
export function dropJunk(jpeg: Uint8Array): Uint8Array {
  const kept = [jpeg.subarray(0, 2)];
  let position = 2;
  for (;;) {
    const at = jpeg.indexOf(0xff, position);
    const code = jpeg[at + 1];
    const high = jpeg[at + 2];
    const low = jpeg[at + 3];
    if (at < 0 || code === undefined || high === undefined || low === undefined) return jpeg;
    if (code === START_OF_SCAN) return Buffer.concat([...kept, jpeg.subarray(at)]);
    if (code === 0xff) {
      position = at + 1; // a fill byte
    } else if (code < 0xc0 || (code >= 0xd0 && code <= 0xd9)) {
      position = at + 2; // no segment belongs to it
    } else {
      const end = at + 2 + Math.max(2, high * 256 + low);
      kept.push(jpeg.subarray(at, end));
      position = end;
    }
  }
}
