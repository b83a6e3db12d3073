import { DEFAULT_WEBP_EFFORT } from '../../contract/image-formats.ts';
import { optional, setting } from '../setting.ts';
import { bytes, choice, integer, MEBIBYTE, milliseconds } from '../setting-forms.ts';

/** Variables of transforms: what is accepted, on how much of the machine, and for whom (contract §6, §11). */
export const renderingTable = {
  MAX_ORIGINAL_BYTES: setting(bytes(1), 50 * MEBIBYTE, 'largest original accepted for a transform'),
  MAX_INPUT_PIXELS: setting(
    integer(1, 1_000_000_000, 'pixels'),
    100_000_000,
    'most pixels decoded, summed over the frames',
  ),
  MAX_SCAN_PIXELS: setting(
    integer(1, 1_000_000_000_000, 'pixels'),
    4_000_000_000,
    'most scans of a JPEG times its pixels',
  ),
  MAX_EDGE_PIXELS: setting(
    integer(1, 1_000_000, 'pixels'),
    262_144,
    'longest edge of what is decoded',
  ),
  MAX_FRAMES: setting(integer(1, 100_000, 'frames'), 1_024, 'most frames of an original'),
  WEBP_EFFORT: setting(
    integer(0, 6, 'libwebp method'),
    DEFAULT_WEBP_EFFORT,
    'how hard the encoder of WebP tries: less is faster and larger (docs/tuning.md); another value makes all renderings anew',
  ),
  MAX_RESULT_BYTES: setting(bytes(1), 100 * MEBIBYTE, 'largest result of a transform'),
  ORIGINALS_MEMORY_BYTES: setting(
    bytes(1),
    512 * MEBIBYTE,
    'memory for originals that are being read or rendered, or wait for it; at least twice `MAX_ORIGINAL_BYTES`',
  ),
  TRANSFORM_TIMEOUT_MS: setting(
    milliseconds,
    15_000,
    'time for one transform; then its process is killed',
  ),
  WORKERS: optional(
    integer(1, 1_024, 'cores'),
    "cores to render on; a container's CPU quota counts. Each has a process for short renders and, when they are needed, one of lower priority for long ones",
    { defaultText: 'one per core' },
  ),
  WORKER_MEMORY_BYTES: setting(
    bytes(256 * MEBIBYTE),
    2_560 * MEBIBYTE,
    'private memory of the render processes of one core, where the system can bound it; that of short renders gets 288 MiB and `MAX_ORIGINAL_BYTES`, that of long ones the rest. At least 160 MiB more than `MAX_ORIGINAL_BYTES`',
  ),
  REQUIRE_CONFINEMENT: setting(
    choice('true', 'false'),
    'false',
    '`true` refuses to start, with status 78, where render processes cannot be confined whole (docs/security.md says what that is)',
  ),
  QUEUE_PER_WORKER: setting(
    integer(0, 100_000, 'requests'),
    64,
    'requests that may wait for each core, in each of the two queues',
  ),
  QUEUE_TIMEOUT_MS: setting(
    milliseconds,
    5_000,
    'longest wait; a request that is foreseen to wait longer than half of it is refused at once',
  ),
  RATE_LIMIT_REQUESTS: optional(
    integer(1, 1_000_000, 'requests'),
    'rendering requests that a client has in each window, one for each 50 ms of a render (docs/tuning.md); more get a 429',
    { defaultText: 'no limit' },
  ),
  RATE_LIMIT_WINDOW_SECONDS: setting(
    integer(1, 86_400, 'seconds'),
    60,
    'the window, in which they are given back evenly',
  ),
};
