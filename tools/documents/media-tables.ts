import { type ErrorCode, errorRegistry } from '../../src/contract/errors.ts';
import {
  type EncoderSettings,
  type OutputFormat,
  outputFormats,
} from '../../src/contract/image-formats.ts';
import {
  ASSET_WIDTHS_PX,
  type QueryParameter,
  queryParameters,
} from '../../src/contract/media-query.ts';
import { parseTarget } from '../../src/contract/media-request.ts';
import {
  platformResourceNames,
  type ResourceName,
  resourceNames,
  resourceRows,
} from '../../src/contract/resources.ts';
import { capitalize } from './openapi/model.ts';
import { code, formatTable } from './table.ts';

/** Cells of resources whose original is not in the storage: the path, and the location of the original. */
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

/** Parameters whose default cannot be requested by a value, with a description of the default. */
const choices: Readonly<Record<string, string>> = {
  size: "the original's",
  format: "the original's",
};

/** Each parameter once: its syntax and meaning are the same in every kind. */
const parameters = new Map(
  kinds.flatMap((kind) => queryParameters[kind]).map((parameter) => [parameter.name, parameter]),
);

/** Rows, each for all parameters with the same cells. */
const parameterRows = new Map<string, { readonly names: string[]; readonly cells: string[] }>();
for (const [name, parameter] of parameters) {
  const defaults = kinds.map((kind) => defaultIn(kind, name));
  const cells = [...defaults, valuesOf(parameter), parameter.description];
  const row = parameterRows.get(cells.join()) ?? { names: [], cells };
  row.names.push(code(name));
  parameterRows.set(cells.join(), row);
}

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
  if ('lossless' in settings) return 'pixel-exact (VP8L)';
  const isFullChroma = 'chromaSubsampling' in settings && settings.chromaSubsampling === '4:4:4';
  return `q ${settings.quality}${isFullChroma ? ', 4:4:4' : ''}`;
}

const qualities = ['high', 'low', 'lossless'] as const;

const causes: Readonly<Record<ErrorCode, string>> = {
  INVALID_FORM_BODY: 'an id, hash, extension, file name or parameter is invalid',
  UNAUTHORIZED:
    'the signature or capability in the URL is missing, malformed, wrong or expired; the response has no `WWW-Authenticate`',
  ACCESS_DENIED:
    'the capability of an upload is valid, but does not permit this upload; or the key or the content is blocked',
  NOT_FOUND: 'no resource matches the path',
  UNKNOWN_MEDIA:
    'the original, the default avatar, or the multipart upload to which a part belongs does not exist',
  METHOD_NOT_ALLOWED: 'the method is not GET, HEAD or OPTIONS; for uploads, not PUT or OPTIONS',
  REQUEST_TIMEOUT: 'an upload is too slow',
  MEDIA_EXISTS:
    'an object with the key of the upload exists. In a directory, `a` and `a/b` cannot both exist: either prevents an upload of the other',
  LENGTH_REQUIRED:
    'an upload has neither `Content-Length` nor `Transfer-Encoding`, or is a part without `Content-Length`',
  PRECONDITION_FAILED: '`If-Match` or `If-Unmodified-Since` fails',
  PAYLOAD_TOO_LARGE: 'an upload exceeds the maximum size of its capability or of the service',
  UNSUPPORTED_MEDIA_TYPE:
    'the request is for a transform of a file that Darkroom does not decode. A transform of a video has no `format`, or no decoder is available. External media are not an image, video or audio. An upload declares a supported image format, but its first bytes do not match. An upload has a `Content-Encoding`, or metadata that cannot be removed',
  RANGE_NOT_SATISFIABLE: 'the range lies outside the media; the response has `Content-Range`',
  MEDIA_TOO_LARGE: 'bytes, pixels, scans, edges, frames or the estimated work exceed a limit',
  UNPROCESSABLE_MEDIA: 'the original is truncated or corrupt, or killed its decoder twice in a row',
  UNAVAILABLE:
    'the original is blocked; the response is `no-store`, and has `Link` if `BLOCKED_BY` is set',
  RATE_LIMITED:
    'the client has exceeded its rate of rendering (`RATE_LIMIT_REQUESTS`). The response has `retry_after` in the body, and the headers `Retry-After`, `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`',
  INTERNAL_ERROR: 'an internal error; the cause is in the log, not in the response',
  ORIGIN_ERROR:
    "the storage failed, or rejected Darkroom's credentials. For external media: the URL is not allowed, or its site failed",
  OVERLOADED:
    'the queue is full, or the wait would be too long. The maximum number of uploads is in progress. The machine has no threads, memory or file descriptors left for a render. The response has `Retry-After`',
  ORIGIN_TIMEOUT: 'the storage, or another site, did not respond in time',
  TRANSFORM_TIMEOUT:
    'the transform exceeded its deadline, or is estimated to take twice as long. After a transform has exceeded its deadline, Darkroom returns this error for ten minutes, also for transforms of the same original with the same or a higher estimated cost',
};

/** Prints the sizes, and `nearestSize` of the elements in the example of clients.md. */
function printSizes(): string {
  const nearest = [40, 40 * 2, 40 * 2.625, 5000 * 2].map(
    (widthPx) => ASSET_WIDTHS_PX.find((size) => size >= widthPx) ?? ASSET_WIDTHS_PX.at(-1),
  );
  return formatOutput([ASSET_WIDTHS_PX.join(' '), nearest.join(' ')]);
}

/** Prints the faults of the example of command-line.md, as `darkroom render` does. */
function printRejectedSize(): string {
  const parsed = parseTarget('/emojis/1473333333333333399.bmp?size=31');
  if (parsed.kind !== 'invalid') throw new Error('The example is valid.');
  const { status, code: name, message, faults } = parsed.error;
  return formatOutput([
    `darkroom: ${status} ${name}: ${message}`,
    ...faults.map((fault) => `  ${fault.path}: ${fault.message}`),
  ]);
}

function formatOutput(lines: readonly string[]): string {
  return ['```', ...lines, '```'].join('\n');
}

/** Tables of the contract's §1, §2 and §5, and outputs of examples, by name. */
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
  sizes: printSizes(),
  'rejected size': printRejectedSize(),
  errors: formatTable(
    ['Status', 'Code', 'When'],
    Object.entries(errorRegistry).map(([name, { status }]) => [
      String(status),
      code(name),
      causes[name as ErrorCode],
    ]),
  ),
};
