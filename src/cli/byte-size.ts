const units = ['KiB', 'MiB', 'GiB', 'TiB'] as const;

/** Formats a number of bytes for a person: `812 bytes`, `1.2 MiB`. */
export function formatByteSize(size: number): string {
  const sizeBytes = Math.round(size); // a mean may be fractional
  if (sizeBytes < 1024) return `${sizeBytes} ${sizeBytes === 1 ? 'byte' : 'bytes'}`;
  const power = Math.min(Math.floor(Math.log2(sizeBytes) / 10), units.length);
  return `${(sizeBytes / 1024 ** power).toFixed(1)} ${units[power - 1] ?? ''}`;
}
