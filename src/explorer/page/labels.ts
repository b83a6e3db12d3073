const integers = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** Formats bytes in decimal units: `97.4 kB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${tenths.format(bytes / 1000)} kB`;
  return `${tenths.format(bytes / 1_000_000)} MB`;
}

/** `97,358 bytes` */
export function formatExactBytes(bytes: number): string {
  return bytes === 1 ? '1 byte' : `${integers.format(bytes)} bytes`;
}

/** `0.4 ms`, `35 ms` */
export function formatMs(durationMs: number): string {
  return `${(durationMs < 10 ? tenths : integers).format(durationMs)} ms`;
}

/** `0.8 s`, `1:05` */
export function formatSeconds(durationS: number): string {
  if (durationS < 60) return `${tenths.format(durationS)} s`;
  const seconds = Math.round(durationS);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/** `19 %`, `0.4 %` */
export function formatFraction(part: number, of: number): string {
  const percent = of === 0 ? 0 : (100 * part) / of;
  return `${(percent < 1 ? tenths : integers).format(percent)} %`;
}

/** Formats the name of a kind in the plural, such as `Avatars` for `user avatar`. */
export function formatHeading(kind: string): string {
  const name = kind.replace(/^(?:user|guild|custom) /, '').replace(/^member /, 'members’ ');
  const plural = /(?:s|x|z|ch|sh)$/.test(name) ? `${name}es` : `${name}s`;
  return plural.slice(0, 1).toUpperCase() + plural.slice(1);
}
