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
import type { OriginalFacts, OriginalsList } from '../../explorer/explorer-data.ts';
import { factsOf, factsOfShipped } from '../../explorer/original-facts.ts';
import type { MetadataService } from '../../pipeline/metadata/metadata.ts';
import type { Clock, OriginListing } from '../../pipeline/ports.ts';
import { Semaphore } from '../../pipeline/semaphore.ts';
import type { Exchange } from '../exchange.ts';

interface ExplorerFile {
  readonly mimeType: string;
  readonly body: Buffer;
}

/** Types of files that are served; other files of the folder, such as sources, are not. */
const MIME_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Output folder of the page's build, relative to this module. */
const PAGE_FOLDER = new URL('../../explorer/page/', import.meta.url);

interface ExplorerParts {
  readonly listing: OriginListing;
  readonly metadata: MetadataService;
  readonly defaultAvatars: readonly DefaultAvatar[];
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
}

/**
 * Explorer beside the media on their listener: a page for people, its files, and what it shows. Its paths are there for
 * those who come to this machine by a name of this machine alone (see `isRebound`), lest pages of other sites
 * read the list of originals through a browser here. A proxy on the same machine, which passes other names on, is
 * no exception: behind one the explorer is off.
 */
export interface ExplorerHandler {
  /** Whether a request asks for a path of the explorer, and may. */
  isFor(request: IncomingMessage): boolean;
  /**
   * Responds to a GET or HEAD.
   *
   * @throws MediaError `ORIGIN_ERROR` or `ORIGIN_TIMEOUT` where the originals are to be listed
   */
  handle(exchange: Exchange): Promise<void>;
}

/**
 * Headers of the explorer's responses, errors included. Scripts and styles run from files of its own alone, and
 * no other site may read the list of originals, or show the page within its own.
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

/** Most originals that are described in one response. */
const MAX_DESCRIBED = 50;

/** Bounds of concurrent descriptions: few, since clients of media come first. */
const DESCRIPTIONS = { slots: 2, maxWaiting: 200, maxWaitMs: 10_000 } as const;

/** Age up to which a list of originals is served again, in milliseconds. */
const LIST_KEPT_MS = 2_000;

type Responder = (
  query: URLSearchParams,
  exchange: Exchange,
) => ExplorerFile | Promise<ExplorerFile>;

/**
 * Opens the explorer. Where attachments have to be signed, it signs those that it lists, for all who can look at it: it
 * is then on only because the operator has set `EXPLORER=on`.
 *
 * @throws Error if the page is not among its files: the build is incomplete
 */
export async function openExplorer(
  { attachments: { mode, signing } }: Pick<Config, 'attachments'>,
  { listing, metadata, defaultAvatars, clock, wallClock }: ExplorerParts,
): Promise<ExplorerHandler> {
  const files = await loadExplorerFiles();
  const page = files.get('index.html');
  if (page === undefined) throw new Error('The explorer has no page.');
  const tables = jsonOf(describeContract());
  const descriptions = new Semaphore(DESCRIPTIONS);
  const sign = (key: string): Readonly<Record<string, string>> | undefined => {
    const path = mode === 'off' ? undefined : signing && signAttachment(key, signing, wallClock());
    return path === undefined
      ? undefined
      : Object.fromEntries(new URLSearchParams(splitTarget(path)[1]));
  };
  // Listing is costly, and any client may request it: requests share one list. A failure is not kept.
  let list: { readonly file: Promise<ExplorerFile>; readonly untilMs: number } | undefined;
  const findList = (): Promise<ExplorerFile> => {
    if (list !== undefined && clock.nowMs() < list.untilMs) return list.file;
    const file = listCatalogue(listing).then((shelves) =>
      jsonOf(listOriginals(shelves, defaultAvatars, sign)),
    );
    const made = { file, untilMs: Infinity };
    list = made;
    file.then(
      () => (made.untilMs = clock.nowMs() + LIST_KEPT_MS),
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
        const describeOriginal = async (originKey: string): Promise<OriginalFacts | null> => {
          const release = await descriptions.enter(signal);
          const question = { originKey, wantsPlaceholder: false, wantsSha256: false };
          return metadata.describe(question, signal).then(factsOf).finally(release);
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

/** Loads the files of the page, once, by name; files of subfolders also by their bare names. */
async function loadExplorerFiles(): Promise<ReadonlyMap<string, ExplorerFile>> {
  const names = await readdir(PAGE_FOLDER, { recursive: true });
  const files = await Promise.all(
    names.map(async (name) => {
      const mimeType = MIME_TYPES[extname(name)];
      if (mimeType === undefined) return [];
      return [
        [basename(name), { mimeType, body: await readFile(new URL(name, PAGE_FOLDER)) }] as const,
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

/** Describes the original at a path of the contract; `null` where nothing is known about it, or cannot be read now. */
async function describePath(
  path: string,
  defaultAvatars: readonly DefaultAvatar[],
  describeOriginal: (originKey: string) => Promise<OriginalFacts | null>,
): Promise<OriginalFacts | null> {
  const parsed = parsePath(path);
  if (parsed.kind !== 'valid') return null;
  const key = originKeyOf(parsed.path);
  if (key !== undefined) return describeOriginal(key).catch(() => null);
  const shipped = defaultAvatars[Number(parsed.path.values.index)];
  return (shipped && factsOfShipped(shipped.body)) ?? null;
}

function jsonOf(value: object): ExplorerFile {
  return { mimeType: 'application/json; charset=utf-8', body: Buffer.from(JSON.stringify(value)) };
}

interface Arrival {
  readonly headers: IncomingHttpHeaders;
  readonly socket: { readonly localAddress?: string | undefined };
}

/**
 * Whether a request came to this machine's own address under a name that anybody may have pointed there (DNS rebinding):
 * a page of `evil.example`, whose name leads to 127.0.0.1 once the page is loaded, has the same origin as the service
 * there, and could read the service in the browser of a person at this machine. Nobody can point `localhost`, names that
 * end with `.localhost` (RFC 6761 §6.3) and addresses elsewhere.
 *
 * An address that Node does not know counts as this machine's own. Not covered: addresses of a network, which are usually
 * reached by a name.
 */
export function isRebound({ headers, socket }: Arrival): boolean {
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
