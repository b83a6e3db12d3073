import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { MediaError } from '../../contract/errors.ts';
import { queryParameters } from '../../contract/media-query.ts';
import { pathOfTarget } from '../../contract/media-request.ts';
import { type ResourceName, resourceRows } from '../../contract/resources.ts';
import type { DefaultAvatar } from '../../default-avatars/default-avatars.ts';
import type { ContractTables, OriginalsList } from '../../explorer/explorer-data.ts';
import type { ExplorerFile } from '../../explorer/explorer-files.ts';
import type { OriginalsCatalogue } from '../../pipeline/originals/catalogue.ts';
import type { Clock } from '../../pipeline/ports.ts';
import { BufferPieces, PIECE_BYTES } from '../media/buffer-chunks.ts';
import { isRebound } from './rebinding.ts';
import { SharedFile } from './shared-file.ts';

/** What the explorer stands on. */
export interface ExplorerParts {
  /** The files of the page, by their names. */
  readonly files: ReadonlyMap<string, ExplorerFile>;
  readonly catalogue: OriginalsCatalogue;
  readonly defaultAvatars: readonly DefaultAvatar[];
  readonly clock: Clock;
}

/**
 * Headers of the explorer's answers, errors included. Scripts and styles run from files of its own alone, and
 * nobody else may read the list of originals, or show the page within his own.
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

/** Answers a GET or HEAD of one path. */
type Responder = () => ExplorerFile | Promise<ExplorerFile>;

/**
 * Beside the media on their listener: a page for people, its files, and what it shows. Its paths are there for
 * who comes to this machine by a name of this machine alone (see `isRebound`), lest pages of others read the list
 * of originals through a browser here. A proxy on the same machine, which passes other names on, is no exception:
 * behind one the explorer is off.
 */
export class ExplorerHandler {
  /** By path; none of them is a path of the contract. */
  readonly #responders: ReadonlyMap<string, Responder>;

  /** @throws Error if the page is not among the files: the build is incomplete */
  constructor({ files, catalogue, defaultAvatars, clock }: ExplorerParts) {
    const page = files.get('index.html');
    if (page === undefined) throw new Error('The explorer has no page.');
    const tables = jsonOf(describeContract());
    const originals = new SharedFile(
      async () => jsonOf(listOriginals(await catalogue.list(), defaultAvatars)),
      clock,
    );
    this.#responders = new Map<string, Responder>([
      ...[...files].map(([name, file]) => [`/explorer/${name}`, () => file] as const),
      ['/', () => page],
      ['/explorer/contract.json', () => tables],
      ['/explorer/originals.json', () => originals.read()],
    ]);
  }

  /** Whether a request asks for a path of the explorer, and may. */
  isFor(request: IncomingMessage): boolean {
    return this.#responders.has(pathOfTarget(request.url ?? '')) && !isRebound(request);
  }

  /** @throws MediaError `ORIGIN_ERROR` or `ORIGIN_TIMEOUT` where the originals are to be listed */
  async handle(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const respond = this.#responders.get(pathOfTarget(request.originalUrl));
    if (respond === undefined) throw new MediaError('NOT_FOUND');
    const { mimeType, body } = await respond();
    reply.header('content-type', mimeType).header('content-length', body.length);
    if (request.method === 'HEAD') return reply.send();
    return reply.send(body.length > PIECE_BYTES ? new BufferPieces(body) : body);
  }
}

/** What can be asked for, from the tables that routing goes by. */
function describeContract(): ContractTables {
  const resources = (Object.keys(resourceRows) as ResourceName[]).map((name) => {
    const { template, extensions = [], query } = resourceRows[name];
    return { name, template, extensions, parameters: queryParameters[query] };
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
