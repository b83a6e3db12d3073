import { type ErrorCode, errorRegistry } from '../../src/contract/errors.ts';
import {
  type EncoderSettings,
  type OutputFormat,
  outputFormats,
} from '../../src/contract/image-formats.ts';
import { type QueryParameter, queryParameters } from '../../src/contract/media-query.ts';
import {
  platformResourceNames,
  type ResourceName,
  resourceNames,
  resourceRows,
} from '../../src/contract/resources.ts';
import { capitalize } from './openapi/model.ts';
import { code, formatTable } from './table.ts';

/** Cells of resources whose original is not in the storage: the path, and where the original is. */
const foreign: Readonly<Partial<Record<ResourceName, readonly [path: string, key: string]>>> = {
  'default avatar': ['`/avatars/{index}.png` on `{static_url}`', 'shipped with the service'],
  'external media': ['`/external/{signature}/{target}`', "none: another site's URL"],
};

const describe = (name: ResourceName): readonly string[] => {
  const { template, extensions, fileExtensions, originKey, query } = resourceRows[name];
  const [path, key] = foreign[name] ?? [
    code(template),
    code(originKey?.replace(/\{\w+_hash\}/, '{hash}') ?? ''),
  ];
  const allowed = extensions ?? fileExtensions;
  const kind = query === 'file' ? 'none' : query;
  return [capitalize(name), path, allowed?.join(' ') ?? 'any', key, kind];
};

const resourceHeads = ['Resource', 'Path', 'Extensions', "Original's key", 'Query'];

const kinds = ['image', 'sticker', 'external'] as const;

/** Parameters whose absence is a choice of its own. */
const choices: Readonly<Record<string, string>> = {
  size: 'its own width',
  format: "the original's",
};

/** Each parameter once, whose form and meaning are the same in every kind. */
const parameters = new Map(
  kinds.flatMap((kind) => queryParameters[kind]).map((parameter) => [parameter.name, parameter]),
);

/** A row for all parameters of the same cells. */
const parameterRows = new Map<string, { readonly names: string[]; readonly cells: string[] }>();
for (const [name, parameter] of parameters) {
  const defaults = kinds.map((kind) => defaultIn(kind, name));
  const cells = [...defaults, valuesOf(parameter), parameter.description];
  const row = parameterRows.get(cells.join()) ?? { names: [], cells };
  row.names.push(code(name));
  parameterRows.set(cells.join(), row);
}

/** The default of a parameter in a kind of query. */
function defaultIn(kind: (typeof kinds)[number], name: string): string {
  const parameter = queryParameters[kind].find((each) => each.name === name);
  if (parameter === undefined) return '–';
  return parameter.default === undefined ? (choices[name] ?? 'none') : code(parameter.default);
}

function valuesOf({ form }: QueryParameter): string {
  if (form.kind === 'integer') return `${form.min} to ${form.max}`;
  const isNumeric = form.values.every((value) => /^\d+$/.test(value));
  return isNumeric ? form.values.join(' ') : form.values.map(code).join(', ');
}

function describeQuality(settings: EncoderSettings[OutputFormat]): string {
  if ('colours' in settings) return `${settings.colours} colours`;
  if ('palette' in settings) return settings.palette ? 'palette' : 'true colour';
  if ('lossless' in settings) return 'VP8L, every bit';
  const isFullChroma = 'chromaSubsampling' in settings && settings.chromaSubsampling === '4:4:4';
  return `q ${settings.quality}${isFullChroma ? ', 4:4:4' : ''}`;
}

const qualities = ['high', 'low', 'lossless'] as const;

/** Causes of each error, in the words of the contract. */
const causes: Readonly<Record<ErrorCode, string>> = {
  INVALID_FORM_BODY: 'an id, hash, extension, file name or parameter breaks its rule',
  UNAUTHORIZED:
    'the signature or capability in the URL is missing, malformed, wrong or expired; no `WWW-Authenticate`',
  ACCESS_DENIED:
    'the capability of an upload is valid, but for something else; the key or the bytes are blocked',
  NOT_FOUND: 'the path is that of no resource',
  UNKNOWN_MEDIA:
    'the storage has no such original, or there is no such default avatar; of a part, no such multipart upload',
  METHOD_NOT_ALLOWED: 'the method is not GET, HEAD or OPTIONS; of uploads, not PUT or OPTIONS',
  REQUEST_TIMEOUT: 'an upload is too slow',
  MEDIA_EXISTS:
    'an upload to a key that has an object already; in a folder, also one above or below the key: `a` and `a/b`',
  LENGTH_REQUIRED:
    'an upload has neither `Content-Length` nor `Transfer-Encoding`, or is a part without `Content-Length`',
  PRECONDITION_FAILED: '`If-Match` or `If-Unmodified-Since` does not hold',
  PAYLOAD_TOO_LARGE: 'an upload is larger than its capability or the limit allows',
  UNSUPPORTED_MEDIA_TYPE:
    'a transform is requested of a file that is not a decodable image, or of a video without `format` or without a decoder here; external media of a kind that is not shown; an upload that is said to be an image that is decoded, and does not begin like one, or that has a `Content-Encoding`',
  RANGE_NOT_SATISFIABLE: 'the range lies outside of the media; `Content-Range`',
  MEDIA_TOO_LARGE: 'bytes, pixels, scans, edges, frames or the work to be done exceed a limit',
  UNPROCESSABLE_MEDIA:
    'the original is truncated or corrupt, or killed its decoder, twice in a row',
  UNAVAILABLE: 'the original is blocked; `no-store`, and `Link` where `BLOCKED_BY` is set',
  RATE_LIMITED:
    'the client has used up its share of rendering (`RATE_LIMIT_REQUESTS`); `retry_after` in the body, `Retry-After`, `X-RateLimit-Limit`, `X-RateLimit-Remaining`, `X-RateLimit-Reset`',
  INTERNAL_ERROR: "a fault of Darkroom's; the log has the cause, the response has not",
  ORIGIN_ERROR:
    "the storage failed, or refused Darkroom's credentials; another site may not be fetched from, or failed",
  OVERLOADED:
    'the queue is full, or the wait in it too long; as many uploads as may be are under way; the machine lacks a thread, memory or a descriptor for a render; `Retry-After`',
  ORIGIN_TIMEOUT: 'the storage, or another site, did not respond in time',
  TRANSFORM_TIMEOUT:
    'the transform did not end in time or is foreseen to take twice as long; or this transform, or one of the same original that costs no more, did not end in time in the last ten minutes',
};

/** The tables of the contract's §1, §2 and §5, by name. */
export const mediaTables: Readonly<Record<string, string>> = {
  resources: formatTable(resourceHeads, resourceNames.map(describe)),
  'resources of the platform': formatTable(resourceHeads, platformResourceNames.map(describe)),
  parameters: formatTable(
    ['Parameter', ...kinds.map((kind) => `**${kind}**`), 'Values', 'Meaning'],
    [...parameterRows.values()].map(({ names, cells }) => [names.join(', '), ...cells]),
  ),
  qualities: formatTable(
    ['', ...qualities.map(code)],
    Object.entries(outputFormats).map(([format, { qualities: settings }]) => [
      format,
      ...qualities.map((quality) => describeQuality(settings[quality])),
    ]),
  ),
  errors: formatTable(
    ['Status', 'Code', 'When'],
    Object.entries(errorRegistry).map(([name, { status }]) => [
      String(status),
      code(name),
      causes[name as ErrorCode],
    ]),
  ),
};
