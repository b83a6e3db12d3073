import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { Config } from '../../config/config.ts';
import { MediaError } from '../../contract/errors.ts';
import { originKeyOf, parsePath } from '../../contract/media-path.ts';
import { queryParameters } from '../../contract/media-query.ts';
import { splitTarget } from '../../contract/media-request.ts';
import { type ResourceName, resourceNames, resourceRows } from '../../contract/resources.ts';
import type { DefaultAvatar } from '../../default-avatars/default-avatars.ts';
import { type CatalogueShelf, listCatalogue } from '../../explorer/catalogue.ts';
import type {
  ContractTables,
  DescribedResource,
  OriginalFacts,
  OriginalsList,
} from '../../explorer/explorer-data.ts';
import { type ExplorerFile, loadExplorerFiles } from '../../explorer/explorer-files.ts';
import { ExplorerSigner } from '../../explorer/explorer-signer.ts';
import { describeOriginal, OriginalDescriber } from '../../explorer/original-describer.ts';
import type { Originals } from '../../pipeline/originals/originals.ts';
import type { Clock, OriginListing } from '../../pipeline/ports.ts';
import type { AdmittedRenderer } from '../../pipeline/render/admitted-renderer.ts';
import type { Exchange } from '../exchange.ts';

/** Parts of the explorer. */
interface ExplorerParts {
  /** The files of the page, by their names. */
  readonly files: ReadonlyMap<string, ExplorerFile>;
  readonly listing: OriginListing;
  readonly defaultAvatars: readonly DefaultAvatar[];
  readonly clock: Clock;
  /** Describes originals; without it, the explorer knows only their sizes. */
  readonly describer?: OriginalDescriber | undefined;
  /** Signs paths for those who may look at the explorer; without it, there are none but unsigned ones. */
  readonly signer?: ExplorerSigner | undefined;
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

/** Age up to which a list of originals is served again, in milliseconds. */
const LIST_KEPT_MS = 2_000;

/** Returns the file of one path for a query. */
type Responder = (
  query: URLSearchParams,
  exchange: Exchange,
) => ExplorerFile | Promise<ExplorerFile>;

/**
 * Opens the explorer, which signs for all who can look at it where there are keys: it is then on only because the
 * operator has set `EXPLORER=on`.
 */
export async function openExplorer(
  { attachments, external }: Pick<Config, 'attachments' | 'external'>,
  {
    originals,
    renderer,
    wallClock: nowMs,
    ...parts
  }: Omit<ExplorerParts, 'files' | 'describer' | 'signer'> & {
    readonly originals: Originals;
    readonly renderer: AdmittedRenderer;
    /** Milliseconds since 1970. */
    readonly wallClock: () => number;
  },
): Promise<ExplorerHandler> {
  const attachmentSigning = attachments.mode === 'off' ? undefined : attachments.signing;
  const hasKeys = attachmentSigning !== undefined || external !== undefined;
  return new ExplorerHandler({
    ...parts,
    files: await loadExplorerFiles(),
    describer: new OriginalDescriber(originals, renderer),
    signer: hasKeys
      ? new ExplorerSigner({ attachments: attachmentSigning, external: external?.keys, nowMs })
      : undefined,
  });
}

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
  constructor({ files, listing, defaultAvatars, clock, describer, signer }: ExplorerParts) {
    const page = files.get('index.html');
    if (page === undefined) throw new Error('The explorer has no page.');
    const tables = jsonOf(describeContract(signer));
    // Costly, and anybody may ask as often as they like: made once for all who ask meanwhile. No failure is kept.
    const lists = new LRUCache<typeof LIST_PATH, ExplorerFile>({
      max: 1,
      ttl: LIST_KEPT_MS,
      ttlResolution: 0,
      // Without its first millisecond: to the cache, 0 is no time.
      perf: { now: () => clock.nowMs() + 1 },
      fetchMethod: async () =>
        jsonOf(listOriginals(await listCatalogue(listing), defaultAvatars, signer)),
    });
    const responders = new Map<string, Responder>([
      ...[...files].map(([name, file]) => [`/explorer/${name}`, () => file] as const),
      ['/', () => page],
      ['/explorer/contract.json', () => tables],
      [LIST_PATH, () => lists.forceFetch(LIST_PATH)],
      [
        '/explorer/facts.json',
        async (query, exchange) => {
          const paths = query.getAll('path').slice(0, MAX_DESCRIBED);
          const describe = (path: string) =>
            describePath(path, defaultAvatars, describer, exchange);
          return jsonOf({ originals: await Promise.all(paths.map(describe)) });
        },
      ],
    ]);
    if (signer !== undefined) {
      responders.set('/explorer/signed.json', (query) => jsonOf(signer.sign(query)));
    }
    this.#responders = responders;
  }

  /** Whether a request asks for a path of the explorer, and may. */
  isFor(request: IncomingMessage): boolean {
    return this.#responders.has(splitTarget(request.url ?? '')[0]) && !isRebound(request);
  }

  /**
   * Responds to a GET or HEAD.
   *
   * @throws MediaError `ORIGIN_ERROR` or `ORIGIN_TIMEOUT` where the originals are to be listed
   */
  async handle(exchange: Exchange): Promise<void> {
    const [path, rawQuery] = splitTarget(exchange.target);
    const respond = this.#responders.get(path);
    if (respond === undefined) throw new MediaError('NOT_FOUND');
    const query = new URLSearchParams(`?${rawQuery}`);
    const { mimeType, body } = await respond(query, exchange);
    const fields = Object.entries({
      ...EXPLORER_HEADERS,
      'content-type': mimeType,
      'content-length': String(body.length),
    });
    exchange.respond(200, fields.flat(), body);
  }
}

/** Describes the resources, from the tables that route requests. */
function describeContract(signer: ExplorerSigner | undefined): ContractTables {
  const describe = (name: ResourceName): DescribedResource => {
    const { template, extensions = [], query } = resourceRows[name];
    return { name, template, extensions, parameters: queryParameters[query] };
  };
  return {
    resources: resourceNames.filter((name) => !resourceRows[name].isSigned).map(describe),
    external: resourceNames.filter((name) => resourceRows[name].isSigned).map(describe),
    signs: signer?.signs ?? [],
  };
}

function listOriginals(
  shelves: readonly CatalogueShelf[],
  defaultAvatars: readonly DefaultAvatar[],
  signer: ExplorerSigner | undefined,
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
          signature: signer?.signKey(key),
        })),
        isComplete,
      })),
      { resource: 'default avatar', originals: shipped, isComplete: true },
    ],
  };
}

/** Describes the original at a path of the contract; `null` where nothing is known about it. */
async function describePath(
  path: string,
  defaultAvatars: readonly DefaultAvatar[],
  describer: OriginalDescriber | undefined,
  { signal, record }: Exchange,
): Promise<OriginalFacts | null> {
  const parsed = parsePath(path);
  if (parsed.kind !== 'valid') return null;
  const key = originKeyOf(parsed.path);
  if (key !== undefined) return (await describer?.describe(key, signal, record.trace)) ?? null;
  const shipped = defaultAvatars[Number(parsed.path.values.index)];
  return (shipped && describeOriginal(shipped.body)) ?? null;
}

function jsonOf(value: object): ExplorerFile {
  return { mimeType: 'application/json; charset=utf-8', body: Buffer.from(JSON.stringify(value)) };
}

/** Headers and socket of a request. */
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
