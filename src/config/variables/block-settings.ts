import { cdnNames } from '../../contract/cdn-tags.ts';
import { optional, setting, type ValuesOf } from '../setting.ts';
import {
  anyText,
  apiToken,
  apiTokenFile,
  baseUrl,
  bucketName,
  choice,
  fileBelow,
  integer,
  pageAddress,
  serviceId,
} from '../setting-types.ts';

export const BLOCKLIST_CONNECTIONS = 16;

/** Contract §15. */
export const blocklistTable = {
  BLOCKLIST: setting(
    choice('none', 'filesystem', 's3'),
    'none',
    'where the block list is stored: `filesystem` or `s3`. All replicas must use the same list',
  ),
  BLOCKLIST_FILE: optional(
    anyText('a file in an existing directory'),
    'file of the block list; required with `filesystem`. Use a directory outside that of the originals, since Darkroom stores other files next to the list',
  ),
  BLOCKLIST_S3_BUCKET: optional(
    bucketName,
    'bucket of the block list, on the server of the `S3_*` settings; required with `s3`. The server must support conditional writes, and the objects of the bucket must never expire',
  ),
  BLOCKLIST_S3_KEY: setting(
    fileBelow,
    'blocks.jsonl',
    'object key of the block list. Darkroom also stores objects whose keys begin with this key and a dot, for example `blocks.jsonl.tag-key`',
  ),
  BLOCKLIST_POLL_SECONDS: setting(
    integer(1, 60, 'seconds'),
    5,
    'maximum time until a replica applies the changes of others',
  ),
  BLOCKED_BY: optional(
    pageAddress,
    'URL of the blocking entity, sent with each 451 as `Link: <…>; rel="blocked-by"` (RFC 7725)',
    { defaultText: 'none' },
  ),
};

/** Contract §15. */
export const cdnTable = {
  EDGE: optional(
    choice(...cdnNames),
    'the CDN in front, to which Darkroom sends tags and purges; requires `BLOCKLIST`, since pending purges are stored next to the block list',
    { defaultText: 'none' },
  ),
  EDGE_ZONE: optional(
    serviceId,
    'zone (Cloudflare), service (Fastly), pull zone (Bunny) or distribution (CloudFront); required with `EDGE`',
  ),
  EDGE_TOKEN: optional(
    apiToken,
    "token for the CDN's API with the right to purge; required with `EDGE`, except for CloudFront, which uses the usual `AWS_*` credentials",
    { isSecret: true },
  ),
  EDGE_TOKEN_FILE: optional(apiTokenFile, 'the same from a file', { isSecret: true }),
  EDGE_API: optional(baseUrl, "base URL of the CDN's API", { defaultText: "the CDN's own" }),
};

export function readCdn(values: ValuesOf<typeof cdnTable>) {
  const { EDGE: name, EDGE_ZONE: zone } = values;
  if (name === undefined || zone === undefined) return undefined;
  const token = values.EDGE_TOKEN ?? values.EDGE_TOKEN_FILE;
  return { name, zone, token, api: values.EDGE_API };
}
