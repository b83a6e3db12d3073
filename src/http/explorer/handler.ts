import { readdir, readFile } from 'node:fs/promises';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { basename, extname } from 'node:path';
import type { Config } from '../../config/config.ts';
import { MediaError } from '../../contract/errors.ts';
import { originKeyOf, parsePath } from '../../contract/media-path.ts';
import { splitTarget } from '../../contract/media-request.ts';
import { signAttachment } from '../../contract/signing/attachment-signature.ts';
import type { DefaultAvatar } from '../../default-avatars/default-avatars.ts';
import { type CatalogueShelf, listCatalogue } from '../../explorer/catalogue.ts';
import { describeContract } from '../../explorer/contract-tables.ts';
import type { OriginalProperties, OriginalsList } from '../../explorer/explorer-data.ts';
import { propertiesOf, propertiesOfShipped } from '../../explorer/original-properties.ts';
import type { MetadataService } from '../../pipeline/metadata/metadata.ts';
import type { Clock, OriginListing } from '../../pipeline/ports.ts';
import { Semaphore } from '../../pipeline/semaphore.ts';
import type { Exchange } from '../exchange.ts';

interface ExplorerFile {
  readonly mimeType: string;
  readonly body: Buffer;
}

/** Types of the served files; other files of the directory are sources. */
const MIME_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Output directory of the page's build, relative to this module. */
const PAGE_DIRECTORY = new URL('../../explorer/page/', import.meta.url);

interface ExplorerParts {
  readonly listing: OriginListing;
  readonly metadata: MetadataService;
  readonly defaultAvatars: readonly DefaultAvatar[];
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
}

/**
 * Explorer on the media listener: a page, its files, and its data. Responds only under a host name of this machine (see
 * `isRebound`), so not behind a proxy on this machine that forwards other names.
 */
export interface ExplorerHandler {
  /** Whether a request is for a path of the explorer, under a permitted host name. */
  isFor(request: IncomingMessage): boolean;
  /** @throws MediaError `ORIGIN_ERROR` or `ORIGIN_TIMEOUT` if the originals cannot be listed */
  handle(exchange: Exchange): Promise<void>;
}

/**
 * Headers of the explorer's responses, errors included. Only its scripts and styles run, and other sites can neither read
 * its data nor embed it.
 */
export const EXPLORER_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
} as const;

const LIST_PATH = '/explorer/originals.json';

const MAX_DESCRIBED = 50;

/** Limits of concurrent descriptions, which are low because clients of media take precedence. */
const DESCRIPTIONS = { slots: 2, maxWaiting: 200, maxWaitMs: 10_000 } as const;

const LIST_MAX_AGE_MS = 2_000;

type Responder = (
  query: URLSearchParams,
  exchange: Exchange,
) => ExplorerFile | Promise<ExplorerFile>;

/**
 * Opens the explorer. It signs the listed attachments if their URLs need a signature, for anyone who can open the page.
 *
 * @throws Error if the page is missing because the build is incomplete
 */
export async function openExplorer(
  { attachments: { mode, signing } }: Pick<Config, 'attachments'>,
  { listing, metadata, defaultAvatars, clock, wallClock }: ExplorerParts,
): Promise<ExplorerHandler> {
  const files = await loadExplorerFiles();
  const page = files.get('index.html');
  if (page === undefined) throw new Error('explorer/page/index.html is missing.');
  const tables = jsonOf(describeContract());
  const descriptions = new Semaphore(DESCRIPTIONS);
  const sign = (key: string): Readonly<Record<string, string>> | undefined => {
    const path = mode === 'off' ? undefined : signing && signAttachment(key, signing, wallClock());
    return path === undefined
      ? undefined
      : Object.fromEntries(new URLSearchParams(splitTarget(path)[1]));
  };
  // Requests share a list, since listing is costly and any client may request it. Failures are not cached.
  let list: { readonly file: Promise<ExplorerFile>; readonly untilMs: number } | undefined;
  const findList = (): Promise<ExplorerFile> => {
    if (list !== undefined && clock.nowMs() < list.untilMs) return list.file;
    const file = listCatalogue(listing).then((shelves) =>
      jsonOf(listOriginals(shelves, defaultAvatars, sign)),
    );
    const made = { file, untilMs: Infinity };
    list = made;
    file.then(
      () => (made.untilMs = clock.nowMs() + LIST_MAX_AGE_MS),
      () => (made.untilMs = -Infinity),
    );
    return file;
  };
  const responders: ReadonlyMap<string, Responder> = new Map<string, Responder>([
    ...[...files].map(([name, file]) => [`/explorer/${name}`, () => file] as const),
    ['/', () => page],
    ['/explorer/contract.json', () => tables],
    [LIST_PATH, findList],
    [
      '/explorer/facts.json',
      async (query, { signal }) => {
        const paths = query.getAll('path').slice(0, MAX_DESCRIBED);
        const describeOriginal = async (originKey: string): Promise<OriginalProperties | null> => {
          const free = await descriptions.acquire(signal);
          const options = { originKey, wantsPlaceholder: false, wantsSha256: false };
          return metadata.describe(options, signal).then(propertiesOf).finally(free);
        };
        const describe = (path: string) => describePath(path, defaultAvatars, describeOriginal);
        return jsonOf({ originals: await Promise.all(paths.map(describe)) });
      },
    ],
  ]);
  return {
    isFor: (request) => responders.has(splitTarget(request.url ?? '')[0]) && !isRebound(request),
    handle: async (exchange) => {
      const [path, rawQuery] = splitTarget(exchange.target);
      const respond = responders.get(path);
      if (respond === undefined) throw new MediaError('NOT_FOUND');
      const { mimeType, body } = await respond(new URLSearchParams(`?${rawQuery}`), exchange);
      const fields = Object.entries({
        ...EXPLORER_HEADERS,
        'content-type': mimeType,
        'content-length': String(body.length),
      });
      exchange.respond(200, fields.flat(), body);
    },
  };
}

async function loadExplorerFiles(): Promise<ReadonlyMap<string, ExplorerFile>> {
  const names = await readdir(PAGE_DIRECTORY, { recursive: true });
  const files = await Promise.all(
    names.map(async (name) => {
      const mimeType = MIME_TYPES[extname(name)];
      if (mimeType === undefined) return [];
      return [
        [
          basename(name),
          { mimeType, body: await readFile(new URL(name, PAGE_DIRECTORY)) },
        ] as const,
      ];
    }),
  );
  return new Map(files.flat());
}

function listOriginals(
  shelves: readonly CatalogueShelf[],
  defaultAvatars: readonly DefaultAvatar[],
  sign: (key: string) => Readonly<Record<string, string>> | undefined,
): OriginalsList {
  const shipped = defaultAvatars.map(({ body }, index) => ({
    values: { index: String(index) },
    sizeBytes: body.length,
  }));
  return {
    shelves: [
      ...shelves.map(({ resource, originals, isComplete }) => ({
        resource,
        originals: originals.map(({ key, values, sizeBytes }) => ({
          values,
          sizeBytes,
          signature: sign(key),
        })),
        isComplete,
      })),
      { resource: 'default avatar', originals: shipped, isComplete: true },
    ],
  };
}

/** Describes the original at a path; returns `null` if the path is unknown or the original unreadable. */
async function describePath(
  path: string,
  defaultAvatars: readonly DefaultAvatar[],
  describeOriginal: (originKey: string) => Promise<OriginalProperties | null>,
): Promise<OriginalProperties | null> {
  const parsed = parsePath(path);
  if (parsed.kind !== 'valid') return null;
  const key = originKeyOf(parsed.path);
  if (key !== undefined) return describeOriginal(key).catch(() => null);
  const shipped = defaultAvatars[Number(parsed.path.values.index)];
  return (shipped && propertiesOfShipped(shipped.body)) ?? null;
}

function jsonOf(value: object): ExplorerFile {
  return { mimeType: 'application/json; charset=utf-8', body: Buffer.from(JSON.stringify(value)) };
}

interface ReceivedRequest {
  readonly headers: IncomingHttpHeaders;
  readonly socket: { readonly localAddress?: string | undefined };
}

/**
 * Whether a request reached a loopback address under a public host name (DNS rebinding): once a page of `evil.example` is
 * loaded, its name may resolve to 127.0.0.1, so that the page can read this service. Safe are `localhost`, names below
 * `.localhost` (RFC 6761 §6.3) and IP addresses. Not covered: network addresses, which clients usually reach by name.
 */
export function isRebound({ headers, socket }: ReceivedRequest): boolean {
  if (socket.localAddress !== undefined && !isLoopback(socket.localAddress)) return false;
  return headers.host === undefined || !isOfThisMachine(headers.host.replace(/:\d*$/, ''));
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^(?:::ffff:)?127\./i.test(address);
}

/** @param host without a port */
function isOfThisMachine(host: string): boolean {
  const address = /^\[(.*)\]$/.exec(host)?.[1] ?? host;
  return /^(?:[^.]+\.)*localhost$/i.test(host) || isIP(address) !== 0;
}
