import { readFileSync } from 'node:fs';
import type { MemoryOrigin } from '../support/memory-origin.ts';
import { readSample } from '../support/test-app.ts';

/** One row of `fixtures/client-urls.tsv`: what a client asks for, and what the contract gives. */
export interface ClientUrl {
  /** Library that builds the URL; `observed` for what was seen in other clients. */
  readonly client: string;
  /** The library's word for it, and the options. */
  readonly resource: string;
  /** Path and query. */
  readonly target: string;
  readonly status: number;
  readonly remark: string;
}

const columns = 'client|resource|path|status by the contract (objects present)|remark';

/** Reads `fixtures/client-urls.tsv`. Its statuses were worked out from the contract, not from Darkroom. */
export function readClientUrls(): ClientUrl[] {
  const file = new URL('../../fixtures/client-urls.tsv', import.meta.url);
  const [head, ...lines] = readFileSync(file, 'utf8').trimEnd().split('\n');
  if (head?.split('\t').join('|') !== columns) throw new Error(`Expected the columns ${columns}`);
  return lines.map((line) => {
    const [client, resource, target, status, remark] = line.split('\t');
    if (!client || !resource || !target || !status || !remark) throw new Error(`Faulty: ${line}`);
    return { client, resource, target, status: Number(status), remark };
  });
}

/** The ids and hashes that the URLs of the table are made of. */
export const clientIds = {
  user: '1471234567890123456',
  guild: '1472222222222222223',
  emoji: '1473333333333333334',
  sticker: '1474444444444444445',
  channel: '1475555555555555556',
  attachment: '1476666666666666667',
  stillHash: '0123456789abcdef0123456789abcdef',
  animatedHash: 'a_fedcba9876543210fedcba9876543210',
} as const;

/** Keys of the samples, as `fixtures/originals-index.tsv` lists them. */
const sampleKeys = readFileSync(
  new URL('../../fixtures/originals-index.tsv', import.meta.url),
  'utf8',
)
  .trimEnd()
  .split('\n')
  .slice(1)
  .map((line) => line.split('\t')[0] ?? '');

/** Keys of the originals behind what the table says is served, all of them among the samples. */
export const clientOriginalKeys: readonly string[] = [
  ...new Set(
    readClientUrls()
      .filter(({ status }) => status === 200)
      .flatMap(({ target }) => originalKeyOf(target) ?? []),
  ),
];

/**
 * The key of the sample behind a target, found without the code under test; `undefined` for default
 * avatars. An `a_` is not part of a key.
 */
export function originalKeyOf(target: string): string | undefined {
  const path = decodeURIComponent(target.replace(/\?.*/, '')).slice(1);
  const asset = path.replace(/\.\w+$/, '').replace(/\/a_(?=\w+$)/, '/');
  return sampleKeys.find((key) => key === path || key === asset);
}

/** Puts the originals behind the table into `originals`. */
export function putClientOriginals(originals: MemoryOrigin): void {
  for (const key of clientOriginalKeys) originals.put(key, readSample(key));
}

/** The image format that a target asks for: the parameter's, or else the extension's. */
export function formatAskedBy(target: string): string {
  const { pathname, searchParams } = new URL(target, 'http://cdn.test');
  const asked = searchParams.get('format') ?? pathname.slice(pathname.lastIndexOf('.') + 1);
  return asked === 'jpg' ? 'jpeg' : asked;
}
