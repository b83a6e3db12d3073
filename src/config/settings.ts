import { memorySetting, optional, type Setting, setting, type ValuesOf } from './setting.ts';
import {
  anyText,
  bearerToken,
  bucketName,
  bytes,
  choice,
  directory,
  endpoint,
  fileBelow,
  headerValue,
  hostName,
  integer,
  keyPrefix,
  MEBIBYTE,
  milliseconds,
  proxyList,
  readableFile,
  regionName,
  seconds,
} from './setting-types.ts';
import { blocklistTable, cdnTable } from './variables/block-settings.ts';
import { externalTable } from './variables/external-settings.ts';
import { attachmentTable } from './variables/key-settings.ts';
import { platformTable } from './variables/platform-settings.ts';
import { relayTable } from './variables/relay-settings.ts';
import { renderingTable, videoTable } from './variables/rendering-settings.ts';
import { tracingTable } from './variables/tracing-settings.ts';

const listener = {
  HOST: setting(hostName, '127.0.0.1', 'address to listen on'),
  PORT: setting(integer(0, 65_535), 3000, 'port to listen on; 0 chooses a free one'),
  TLS_CERT_FILE: optional(
    readableFile,
    'certificate chain in PEM; with the key, the listener speaks TLS 1.2 and newer',
  ),
  TLS_KEY_FILE: optional(readableFile, 'private key of the certificate, in PEM'),
  TRUST_PROXY: setting(
    proxyList,
    false,
    "addresses and networks of your proxies, whose `X-Forwarded-For` determines the client's address for the log and the rate limit; `true`: trust all",
  ),
  MAX_CONNECTIONS: optional(
    integer(1, 1_000_000, 'connections'),
    'maximum concurrent connections. Half as many requests can be in progress, at most 2048; more get a 503',
    { defaultText: '16384, or less if the limit of open files is low' },
  ),
  LOG_LEVEL: setting(
    choice('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    'info',
    'level of the log on standard output: requests are at `info`, hits in memory at `debug`. Lines are JSON, or formatted on a terminal',
  ),
  NODE_ENV: optional(
    anyText('production, or any other text'),
    '`production`: `STORAGE_DIR` is required with `filesystem`, and the explorer is off by default',
  ),
};

const originals = {
  STORAGE: setting(
    choice('filesystem', 's3'),
    'filesystem',
    'where originals are stored: `filesystem` or `s3`',
  ),
  STORAGE_DIR: optional(
    directory,
    'directory of the originals, each at the path of its key; required with `NODE_ENV=production`',
    { defaultText: '`fixtures/originals`, the samples' },
  ),
  STORAGE_MARKER: optional(
    fileBelow,
    'a file below `STORAGE_DIR`; if it is missing, the service is not ready and originals are a 502. Use it to detect an unmounted disk',
  ),
  S3_BUCKET: optional(bucketName, 'bucket of the originals; required with `s3`'),
  S3_ENDPOINT: optional(
    endpoint,
    '`http` or `https` URL of an S3 server other than AWS: scheme, host and port',
    { defaultText: 'AWS' },
  ),
  S3_REGION: setting(regionName, 'us-east-1', 'region of the bucket'),
  S3_FORCE_PATH_STYLE: optional(
    choice('true', 'false'),
    "whether the bucket's name is in the path (`true`) or in the host name (`false`)",
    { defaultText: '`true` with `S3_ENDPOINT`' },
  ),
  S3_PREFIX: setting(keyPrefix, '', 'prefix of all keys, for example `media/`'),
  ORIGIN_CONNECT_TIMEOUT_MS: setting(
    milliseconds,
    2_000,
    'timeout for connecting to S3, including DNS and TLS',
  ),
  ORIGIN_FIRST_BYTE_TIMEOUT_MS: setting(
    milliseconds,
    5_000,
    'timeout for the first byte from the storage',
  ),
  ORIGIN_TIMEOUT_MS: setting(
    milliseconds,
    30_000,
    'timeout for reading an original for a transform. Also the maximum pause of S3 while it sends an original that is passed through unchanged, and of any storage during an upload',
  ),
  ORIGIN_MAX_READS: setting(
    integer(1, 65_535, 'originals'),
    64,
    'maximum concurrent reads of originals for transforms',
  ),
  ORIGIN_MAX_STREAMS: setting(
    integer(1, 65_535, 'attachments'),
    256,
    'maximum attachments that are passed through unchanged at the same time',
  ),
};

const caches = {
  CACHE_MEMORY_BYTES: memorySetting(
    'CACHE_MEMORY_BYTES',
    bytes(0),
    'memory for renderings; 0 disables this cache',
  ),
  CACHE_ORIGINALS_BYTES: memorySetting(
    'CACHE_ORIGINALS_BYTES',
    bytes(0),
    'memory for recently read originals, so that their other sizes need no read; 0 disables this cache',
  ),
  CACHE_REVALIDATE_SECONDS: setting(
    seconds,
    300,
    'how long Darkroom uses the known state of an original before it revalidates it with the storage',
  ),
  RESULT_STORE: setting(
    choice('none', 'filesystem', 's3'),
    'none',
    'storage that keeps renderings across restarts: `filesystem` or `s3`; `none` keeps them only in memory',
  ),
  RESULT_STORE_DIR: optional(
    directory,
    'directory for renderings, outside that of the originals; required with `filesystem`',
  ),
  RESULT_STORE_MAX_BYTES: setting(
    bytes(64 * MEBIBYTE),
    10_240 * MEBIBYTE,
    'maximum size of the directory for renderings. It is exceeded by at most a tenth, even if several processes share the directory',
  ),
  RESULT_S3_BUCKET: optional(
    bucketName,
    'bucket for renderings, on the server of the `S3_*` settings; required with `s3`',
  ),
  RESULT_S3_PREFIX: setting(
    keyPrefix,
    '',
    'prefix of the keys of renderings; required if the bucket is that of the originals',
  ),
  MEDIA_MAX_AGE_SECONDS: setting(
    seconds,
    31_536_000,
    '`max-age` in the `Cache-Control` of media, which is `immutable`',
  ),
  DEFAULT_AVATAR_MAX_AGE_SECONDS: setting(seconds, 86_400, '`max-age` of default avatars'),
  NOT_FOUND_MAX_AGE_SECONDS: setting(seconds, 30, '`max-age` of 404'),
  REFUSED_MAX_AGE_SECONDS: setting(seconds, 300, '`max-age` of 400, 415 and 422'),
  ROBOTS_TAG: setting(
    headerValue,
    'noindex',
    '`X-Robots-Tag` of all media except default avatars, for search engines; empty: not sent',
    { mayBeEmpty: true },
  ),
  CDN_CACHE_CONTROL: setting(
    choice('true', 'false'),
    'false',
    '`true`: responses also have `CDN-Cache-Control`, with the value of `Cache-Control`, for a CDN that rewrites `Cache-Control` for browsers',
  ),
};

const operation = {
  ADMIN_HOST: setting(hostName, '127.0.0.1', 'address of the admin listener'),
  ADMIN_PORT: optional(integer(0, 65_535), 'port of the admin listener; omit to disable it'),
  ADMIN_TOKEN: optional(
    bearerToken,
    'bearer token of the admin listener, for all paths except `/healthz`, `/readyz` and `/openapi.json`; required with `ADMIN_PORT`',
    { isSecret: true },
  ),
  EXPLORER: optional(
    choice('on', 'off'),
    '`on`: a page at `/` builds URLs, and lists up to 1 000 originals of each kind. Everybody who can reach the listener sees the list, private attachments included',
    {
      defaultText:
        '`on` if `STORAGE=filesystem`, `HOST` is a loopback address, `NODE_ENV` is not `production` and no signing key is set; else `off`',
    },
  ),
  SHUTDOWN_GRACE_MS: setting(milliseconds, 20_000, 'time for requests in progress after SIGTERM'),
};

/** In the order of the documents: contract §7, and the numbers of §4 and §6. */
export const settingGroups = {
  Listener: listener,
  Originals: originals,
  Rendering: renderingTable,
  Videos: videoTable,
  Caches: caches,
  'External media': externalTable,
  'Signed attachments': attachmentTable,
  Uploads: relayTable,
  "A platform's media service": platformTable,
  Blocks: blocklistTable,
  'CDN in front': cdnTable,
  Operation: operation,
  Traces: tracingTable,
} satisfies Readonly<Record<string, Readonly<Record<string, Setting>>>>;

type Joined<Union> = (Union extends unknown ? (member: Union) => void : never) extends (
  all: infer All,
) => void
  ? All
  : never;

type Table = Joined<(typeof settingGroups)[keyof typeof settingGroups]>;

/** Source of the types, the faults, `darkroom check` and the documents. */
export const settingTable: Table = Object.assign({}, ...Object.values(settingGroups));

export type SettingName = keyof Table;

export const settingNames = Object.keys(settingTable) as readonly SettingName[];

export type Settings = ValuesOf<Table>;
