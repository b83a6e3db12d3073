import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import { MediaError } from '../../contract/errors.ts';
import { queryParameters } from '../../contract/media-query.ts';
import { pathOfTarget } from '../../contract/media-request.ts';
import { resourceNames, resourceRows } from '../../contract/resources.ts';
import type { DefaultAvatar } from '../../default-avatars/default-avatars.ts';
import type { ContractTables, OriginalsList } from '../../explorer/explorer-data.ts';
import { type ExplorerFile, loadExplorerFiles } from '../../explorer/explorer-files.ts';
import { OriginalsCatalogue } from '../../pipeline/originals/catalogue.ts';
import type { Clock, OriginListing } from '../../pipeline/ports.ts';
import type { Exchange } from '../exchange.ts';
import { isRebound } from './rebinding.ts';

/** What the explorer is made from. */
export interface ExplorerParts {
  /** The files of the page, by their names. */
  readonly files: ReadonlyMap<string, ExplorerFile>;
  readonly listing: OriginListing;
  readonly defaultAvatars: readonly DefaultAvatar[];
  readonly clock: Clock;
}

/**
 * Headers of the explorer's responses, errors included. Scripts and styles run from files of its own alone, and
 * no other site may read the list of originals, or show the page within its own.
 */
export const EXPLORER_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
} as const;

const LIST_PATH = '/explorer/originals.json';

/** For how long a list of originals is as good as a new one. */
const LIST_KEPT_MS = 2_000;

/** Makes the file of one path. */
type Responder = () => ExplorerFile | Promise<ExplorerFile>;

/**
 * Beside the media on their listener: a page for people, its files, and what it shows. Its paths are there for
 * those who come to this machine by a name of this machine alone (see `isRebound`), lest pages of other sites
 * read the list of originals through a browser here. A proxy on the same machine, which passes other names on, is
 * no exception: behind one the explorer is off.
 */
export class ExplorerHandler {
  /** By path; none of them is a path of the contract. */
  readonly #responders: ReadonlyMap<string, Responder>;

  /** @throws Error if the page is not among the files: the build is incomplete */
  constructor({ files, listing, defaultAvatars, clock }: ExplorerParts) {
    const page = files.get('index.html');
    if (page === undefined) throw new Error('The explorer has no page.');
    const tables = jsonOf(describeContract());
    const catalogue = new OriginalsCatalogue(listing);
    // Costly, and anybody may ask as often as they like: made once for all who ask meanwhile. No failure is kept.
    const lists = new LRUCache<typeof LIST_PATH, ExplorerFile>({
      max: 1,
      ttl: LIST_KEPT_MS,
      ttlResolution: 0,
      // Without its first millisecond: to the cache, 0 is no time.
      perf: { now: () => clock.nowMs() + 1 },
      fetchMethod: async () => jsonOf(listOriginals(await catalogue.list(), defaultAvatars)),
    });
    this.#responders = new Map<string, Responder>([
      ...[...files].map(([name, file]) => [`/explorer/${name}`, () => file] as const),
      ['/', () => page],
      ['/explorer/contract.json', () => tables],
      [LIST_PATH, () => lists.forceFetch(LIST_PATH)],
    ]);
  }

  /** The paths that it has. */
  get paths(): readonly string[] {
    return [...this.#responders.keys()];
  }

  /** Whether a request asks for a path of the explorer, and may. */
  isFor(request: IncomingMessage): boolean {
    return this.#responders.has(pathOfTarget(request.url ?? '')) && !isRebound(request);
  }

  /**
   * Responds to a GET or HEAD.
   *
   * @throws MediaError `ORIGIN_ERROR` or `ORIGIN_TIMEOUT` where the originals are to be listed
   */
  async handle(exchange: Exchange): Promise<void> {
    const respond = this.#responders.get(pathOfTarget(exchange.target));
    if (respond === undefined) throw new MediaError('NOT_FOUND');
    const { mimeType, body } = await respond();
    const fields = Object.entries({
      ...EXPLORER_HEADERS,
      'content-type': mimeType,
      'content-length': String(body.length),
    });
    exchange.respond(200, fields.flat(), body);
  }
}

/**
 * Puts the explorer together, over the list of the originals.
 *
 * @throws Error if its page is not there: the build is incomplete
 */
export async function openExplorer(parts: Omit<ExplorerParts, 'files'>): Promise<ExplorerHandler> {
  return new ExplorerHandler({ ...parts, files: await loadExplorerFiles() });
}

/** What can be asked for without a signature, from the tables that routing goes by. */
function describeContract(): ContractTables {
  const resources = resourceNames.flatMap((name) => {
    const { template, extensions = [], query, isSigned } = resourceRows[name];
    return isSigned ? [] : [{ name, template, extensions, parameters: queryParameters[query] }];
  });
  return { resources };
}

function listOriginals(
  shelves: Awaited<ReturnType<OriginalsCatalogue['list']>>,
  defaultAvatars: readonly DefaultAvatar[],
): OriginalsList {
  const shipped = defaultAvatars.map(({ body }, index) => ({
    values: { index: String(index) },
    sizeBytes: body.length,
  }));
  return {
    shelves: [
      ...shelves.map(({ resource, originals, isComplete }) => ({
        resource,
        originals: originals.map(({ values, sizeBytes }) => ({ values, sizeBytes })),
        isComplete,
      })),
      { resource: 'default avatar', originals: shipped, isComplete: true },
    ],
  };
}

function jsonOf(value: ContractTables | OriginalsList): ExplorerFile {
  return { mimeType: 'application/json; charset=utf-8', body: Buffer.from(JSON.stringify(value)) };
}
