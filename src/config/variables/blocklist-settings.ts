import { optional, setting } from '../setting.ts';
import { anyText, bucketName, choice, fileBelow, integer, pageAddress } from '../setting-forms.ts';

/** Most simultaneous connections to the bucket of the list. */
export const BLOCKLIST_CONNECTIONS = 16;

/** Variables of blocks: contract §15. */
export const blocklistTable = {
  BLOCKLIST: setting(
    choice('none', 'filesystem', 's3'),
    'none',
    'where the list of blocks is, which all replicas share: `filesystem` or `s3`',
  ),
  BLOCKLIST_FILE: optional(
    anyText('a file in an existing folder'),
    'the list, in a folder outside of that of the originals, which has other files beside it; needed with `filesystem`',
  ),
  BLOCKLIST_S3_BUCKET: optional(
    bucketName,
    'bucket of the list, on the server of the `S3_*` settings, which must support conditional writes; its objects must never expire; needed with `s3`',
  ),
  BLOCKLIST_S3_KEY: setting(
    fileBelow,
    'blocks.jsonl',
    'key of the list; other objects are beside it, `blocks.jsonl.17` for example',
  ),
  BLOCKLIST_POLL_SECONDS: setting(
    integer(1, 60, 'seconds'),
    5,
    'how often each replica reads the blocks of the others',
  ),
  BLOCKED_BY: optional(
    pageAddress,
    'address of who blocks, sent with each 451 as `Link: <…>; rel="blocked-by"` (RFC 7725)',
    { defaultText: 'none' },
  ),
};
