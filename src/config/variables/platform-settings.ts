import { contractResources, platformResources } from '../../contract/resources.ts';
import { optional, setting, type ValuesOf } from '../setting.ts';
import {
  bearerToken,
  bucketName,
  bytes,
  choice,
  directory,
  hostName,
  integer,
  listOf,
  MEBIBYTE,
  publicUrl,
} from '../setting-types.ts';

/** Short, since a platform that stores originals itself does not announce new ones (contract §14). */
const MISSING_SECONDS = 2;

/** Contract §14. */
export const platformTable = {
  COMPATIBILITY: setting(
    choice('none', 'fluxer'),
    'none',
    "`fluxer`: Darkroom replaces this platform's media service; docs/platform.md lists what changes",
  ),
  UPLOADS_S3_BUCKET: optional(
    bucketName,
    'bucket for uploads whose capability names it, on the server of the `S3_*` settings. Uploads can have any key and replace existing objects. No public route reads the bucket',
  ),
  UPLOADS_DIR: optional(
    directory,
    'directory instead of `UPLOADS_S3_BUCKET`, for uploads whose capability names `UPLOADS_DIR_BUCKET`; outside the directories of originals and renderings',
  ),
  UPLOADS_DIR_BUCKET: setting(
    bucketName,
    'uploads',
    'bucket name that capabilities use for `UPLOADS_DIR`',
  ),
  PUBLIC_URLS: optional(
    listOf(publicUrl),
    'base URLs under which clients reach this service, such as `https://cdn.example`: origin and path. Darkroom never fetches from them; an external media URL below one of them is read from its own storage',
    { defaultText: 'none' },
  ),
  INTERNAL_HOST: setting(hostName, '127.0.0.1', 'address of the internal listener'),
  INTERNAL_PORT: optional(
    integer(0, 65_535),
    "port of the internal listener for the platform's API: metadata, thumbnails and frames, over plain HTTP; omit to disable it. If host and port are those of the public listener, that listener serves these routes, too",
  ),
  INTERNAL_TOKEN: optional(
    bearerToken,
    'bearer token for the internal listener; required with `INTERNAL_PORT`',
    {
      isSecret: true,
    },
  ),
  INTERNAL_MAX_BODY_BYTES: setting(
    bytes(MEBIBYTE),
    64 * MEBIBYTE,
    'maximum body size of an internal request; media returned as base64 are at most three quarters of it',
  ),
};

interface ListenValues {
  readonly HOST: string;
  readonly PORT: number;
  readonly S3_BUCKET: string | undefined;
}

export function readInternal(values: ValuesOf<typeof platformTable> & ListenValues) {
  const { INTERNAL_HOST: host, INTERNAL_PORT: port, INTERNAL_TOKEN: token } = values;
  if (port === undefined || token === undefined) return undefined;
  return {
    listen: { host, port },
    /** Whether the public listener serves the internal routes. Port 0 is a different port for each listener. */
    isShared: port !== 0 && port === values.PORT && host === values.HOST,
    token,
    maxBodyBytes: values.INTERNAL_MAX_BODY_BYTES,
    bucket: values.S3_BUCKET,
  };
}

type Values = ValuesOf<typeof platformTable> & { readonly NOT_FOUND_MAX_AGE_SECONDS: number };

/** Reads what depends only on `COMPATIBILITY`; other features have settings of their own. */
export function readCompatibility(values: Values) {
  const isFluxer = values.COMPATIBILITY === 'fluxer';
  const { NOT_FOUND_MAX_AGE_SECONDS: seconds } = values;
  return {
    /** `max-age` of missing media; `undefined` for `no-store`. */
    unknownMediaMaxAgeSeconds: isFluxer ? undefined : seconds,
    parseOptions: {
      resources: isFluxer ? platformResources : contractResources,
      publicUrls: values.PUBLIC_URLS ?? [],
    },
    missingForMs: (isFluxer ? Math.min(MISSING_SECONDS, seconds) : seconds) * 1000,
  };
}
