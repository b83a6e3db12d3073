import { DEFAULT_WEBP_EFFORT } from '../../contract/image-formats.ts';
import { MIN_WORKER_BYTES } from '../machine-limits.ts';
import { memorySetting, optional, setting, type ValuesOf } from '../setting.ts';
import { bytes, choice, integer, MEBIBYTE, milliseconds, programChoice } from '../setting-types.ts';

/** Contract §6 and §11. */
export const renderingTable = {
  MAX_ORIGINAL_BYTES: setting(
    bytes(1),
    50 * MEBIBYTE,
    'maximum size of an original for a transform',
  ),
  MAX_INPUT_PIXELS: setting(
    integer(1, 1_000_000_000, 'pixels'),
    100_000_000,
    'maximum pixels of a still, and of one frame of an animation',
  ),
  MAX_ANIMATION_PIXELS: setting(
    integer(1, 10_000_000_000, 'pixels'),
    250_000_000,
    'maximum pixels of an animation, summed over its frames',
  ),
  MAX_SCAN_PIXELS: setting(
    integer(1, 1_000_000_000_000, 'pixels'),
    4_000_000_000,
    "maximum product of a JPEG's number of pixels and number of scans",
  ),
  MAX_EDGE_PIXELS: setting(
    integer(1, 1_000_000, 'pixels'),
    262_144,
    'maximum edge length of a decoded image',
  ),
  MAX_FRAMES: setting(integer(1, 50_000, 'frames'), 1_024, 'maximum frames of an original'),
  WEBP_EFFORT: setting(
    integer(0, 6, 'libwebp method'),
    DEFAULT_WEBP_EFFORT,
    'effort of the WebP encoder: lower values are faster and produce larger files (docs/tuning.md). Changing it re-renders everything',
  ),
  MAX_RESULT_BYTES: setting(bytes(1), 100 * MEBIBYTE, 'maximum size of a rendering'),
  ORIGINALS_MEMORY_BYTES: memorySetting(
    'ORIGINALS_MEMORY_BYTES',
    bytes(1),
    'memory for originals that are read, rendered or waiting. An original larger than this memory is accepted while other originals use less than half of it',
  ),
  TRANSFORM_TIMEOUT_MS: setting(
    milliseconds,
    15_000,
    'deadline of one transform, after which its process is killed',
  ),
  WORKERS: optional(
    integer(1, 1_024, 'cores'),
    "number of cores to render on; the default respects a container's CPU quota. Each core has one process for light renders and, when needed, one of lower priority for heavy renders. If the memory suffices, there is one more process for light renders",
    { defaultText: 'one per core' },
  ),
  WORKER_MEMORY_BYTES: optional(
    bytes(MIN_WORKER_BYTES),
    'limit of the private memory of all render processes of one core, if the system can enforce it. The process for light renders gets 288 MiB plus `MAX_ORIGINAL_BYTES`, and the one for heavy renders gets the rest; if the memory does not suffice for both, one process renders everything. The setting must be at least 160 MiB more than `MAX_ORIGINAL_BYTES`',
    {
      defaultText: '`2560MiB`, or less if the machine has [less memory](tuning.md#memory-bound)',
    },
  ),
  REQUIRE_CONFINEMENT: setting(
    choice('true', 'false'),
    'false',
    '`true`: the service does not start (status 78) unless render processes run in the full sandbox (docs/security.md)',
  ),
  QUEUE_PER_WORKER: setting(
    integer(0, 100_000, 'requests'),
    64,
    'maximum waiting requests for each core, in each of the two queues',
  ),
  QUEUE_TIMEOUT_MS: setting(
    milliseconds,
    5_000,
    'maximum wait in a queue; a request that would probably wait for more than half of it is rejected at once',
  ),
  RATE_LIMIT_REQUESTS: optional(
    integer(1, 1_000_000, 'requests'),
    'renders of one client in each window, where 50 ms count as one (docs/tuning.md); more get a 429',
    { defaultText: 'no limit' },
  ),
  RATE_LIMIT_WINDOW_SECONDS: setting(
    integer(1, 86_400, 'seconds'),
    60,
    'length of the window; the allowance refills evenly over it',
  ),
};

/** Contract §12. */
export const videoTable = {
  VIDEO_DECODER: setting(
    programChoice('auto', 'off'),
    'auto',
    'program that decodes video frames: `auto` uses `ffmpeg` from `PATH`. Without a decoder, videos have no posters; the log and `darkroom check` report the reason',
  ),
  VIDEO_DECODER_CONFINEMENT: setting(
    choice('whole', 'best'),
    'whole',
    'sandbox of the decoder: with `whole`, posters are disabled unless the full sandbox in docs/security.md is available. `best` accepts what the host supports, but means `whole` with `REQUIRE_CONFINEMENT=true`',
  ),
  VIDEO_MAX_READ_BYTES: setting(
    bytes(1),
    24 * MEBIBYTE,
    'maximum bytes read from a video for one poster; `MAX_ORIGINAL_BYTES` does not limit videos',
  ),
};

export function readVideoDecoder(
  values: ValuesOf<typeof videoTable>,
  requiresConfinement: boolean,
  timeoutMs: number,
  memoryBytes: number,
) {
  return {
    program: values.VIDEO_DECODER,
    memoryBytes,
    mayBeWeaker: values.VIDEO_DECODER_CONFINEMENT === 'best' && !requiresConfinement,
    timeoutMs,
  };
}
