import { memorySetting, optional, type Setting, setting, type ValuesOf } from './setting.ts';
import {
  anyText,
  bearerToken,
  bucketName,
  bytes,
  choice,
  endpoint,
  fileBelow,
  folder,
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
} from './setting-forms.ts';
import { blocklistTable, cdnTable } from './variables/block-settings.ts';
import { externalTable } from './variables/external-settings.ts';
import { attachmentTable } from './variables/key-settings.ts';
import { platformTable } from './variables/platform-settings.ts';
import { relayTable } from './variables/relay-settings.ts';
import { renderingTable, videoTable } from './variables/rendering-settings.ts';
import { tracingTable } from './variables/tracing-settings.ts';

const listener = {
  HOST: setting(hostName, '127.0.0.1', 'address to listen on'),
  PORT: setting(integer(0, 65_535), 3000, 'port to listen on; 0 takes a free one'),
  TLS_CERT_FILE: optional(
    readableFile,
    'certificate chain in PEM; with the key, the listener speaks TLS 1.2 and newer',
  ),
  TLS_KEY_FILE: optional(readableFile, 'its private key in PEM'),
  TRUST_PROXY: setting(
    proxyList,
    false,
    "addresses and networks of proxies whose `X-Forwarded-For` Darkroom trusts for the client's address in the log and the rates; `true`: all",
  ),
  MAX_CONNECTIONS: optional(
    integer(1, 1_000_000, 'connections'),
    'concurrent connections; concurrent requests are half as many, 2048 at most, and more get a 503',
    { defaultText: '16384, or what the limit of open files has room for' },
  ),
  LOG_LEVEL: setting(
    choice('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    'info',
    'JSON lines on standard output, or lines for people if that is a terminal; requests at `info`, hits in memory at `debug`',
  ),
  NODE_ENV: optional(
    anyText('production, or any other text'),
    '`production`: `STORAGE_DIR` must be set if originals are in a folder, and the explorer is off by default',
  ),
};

const originals = {
  STORAGE: setting(
    choice('filesystem', 's3'),
    'filesystem',
    'where originals are: `filesystem` or `s3`',
  ),
  STORAGE_DIR: optional(
    folder,
    'folder of the originals, by key; must be set with `NODE_ENV=production`',
    { defaultText: '`fixtures/originals`, the samples' },
  ),
  STORAGE_MARKER: optional(
    fileBelow,
    'a file below `STORAGE_DIR` without which the service is not ready and originals are a 502: for a disk that may not be mounted',
  ),
  S3_BUCKET: optional(bucketName, 'bucket of the originals; needed with `s3`'),
  S3_ENDPOINT: optional(
    endpoint,
    '`http` or `https` URL of an S3 server other than AWS: scheme, host and port',
    { defaultText: 'AWS' },
  ),
  S3_REGION: setting(regionName, 'us-east-1', 'region of the bucket'),
  S3_FORCE_PATH_STYLE: optional(
    choice('true', 'false'),
    "`true`: the bucket's name is in the path; `false`: in the host name",
    { defaultText: '`true` with `S3_ENDPOINT`' },
  ),
  S3_PREFIX: setting(keyPrefix, '', 'prefix of all keys, `media/` for example'),
  ORIGIN_CONNECT_TIMEOUT_MS: setting(milliseconds, 2_000, 'time to connect to S3: name, TCP, TLS'),
  ORIGIN_FIRST_BYTE_TIMEOUT_MS: setting(
    milliseconds,
    5_000,
    'time to the first byte of the storage',
  ),
  ORIGIN_TIMEOUT_MS: setting(
    milliseconds,
    30_000,
    'time to read an original for a transform; the longest pause of S3 while an original is passed through, and of the storage while an upload is stored',
  ),
  ORIGIN_MAX_READS: setting(
    integer(1, 65_535, 'originals'),
    64,
    'originals read for transforms at the same time',
  ),
  ORIGIN_MAX_STREAMS: setting(
    integer(1, 65_535, 'attachments'),
    256,
    'attachments passed through at the same time',
  ),
};

const caches = {
  CACHE_MEMORY_BYTES: memorySetting(
    'CACHE_MEMORY_BYTES',
    bytes(0),
    'memory for results; 0 keeps none',
  ),
  CACHE_ORIGINALS_BYTES: memorySetting(
    'CACHE_ORIGINALS_BYTES',
    bytes(0),
    'memory for recently read originals, for their other sizes; 0 keeps none',
  ),
  CACHE_REVALIDATE_SECONDS: setting(
    seconds,
    300,
    'how long the state of an original is trusted before the storage is asked again',
  ),
  RESULT_STORE: setting(
    choice('none', 'filesystem', 's3'),
    'none',
    'where renderings are kept beyond the process: `filesystem` or `s3`',
  ),
  RESULT_STORE_DIR: optional(
    folder,
    'folder for them, outside of that of the originals; needed with `filesystem`',
  ),
  RESULT_STORE_MAX_BYTES: setting(
    bytes(64 * MEBIBYTE),
    10_240 * MEBIBYTE,
    'most bytes of that folder, exceeded by a tenth at most, even if several processes share it',
  ),
  RESULT_S3_BUCKET: optional(
    bucketName,
    'bucket for them, on the server of the `S3_*` settings; needed with `s3`',
  ),
  RESULT_S3_PREFIX: setting(
    keyPrefix,
    '',
    'prefix of their keys; needed if the bucket is that of the originals',
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
    '`X-Robots-Tag` of all media but default avatars, for search engines; empty: not sent',
    { mayBeEmpty: true },
  ),
  CDN_CACHE_CONTROL: setting(
    choice('true', 'false'),
    'false',
    '`true`: `CDN-Cache-Control` repeats `Cache-Control`, for a CDN that would rewrite the latter for browsers',
  ),
};

const operation = {
  ADMIN_HOST: setting(hostName, '127.0.0.1', 'address of the admin listener'),
  ADMIN_PORT: optional(integer(0, 65_535), 'port of the admin listener, which is off without it'),
  ADMIN_TOKEN: optional(
    bearerToken,
    'bearer token for purges and metrics; needed with `ADMIN_PORT`',
    { isSecret: true },
  ),
  EXPLORER: optional(
    choice('on', 'off'),
    'a page at `/` that lists up to 1 000 originals of a kind, private attachments too, for everybody who can reach the listener, and builds URLs',
    {
      defaultText:
        '`on` with `STORAGE=filesystem` where `HOST` is a loopback address, `NODE_ENV` is not `production` and no signing key is set, else `off`',
    },
  ),
  SHUTDOWN_GRACE_MS: setting(milliseconds, 20_000, 'time for running requests after SIGTERM'),
};

/** The variables by purpose, as the documents show them: contract §7, and the numbers of §4 and §6. */
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

/** All members of a union at once. */
type Joined<Union> = (Union extends unknown ? (member: Union) => void : never) extends (
  all: infer All,
) => void
  ? All
  : never;

type Table = Joined<(typeof settingGroups)[keyof typeof settingGroups]>;

/** All variables: the source of the schema, the faults, `darkroom check` and the documents. */
export const settingTable: Table = Object.assign({}, ...Object.values(settingGroups));

/** Name of a variable. */
export type SettingName = keyof Table;

export const settingNames = Object.keys(settingTable) as readonly SettingName[];

/** Values of all variables. */
export type Settings = ValuesOf<Table>;
