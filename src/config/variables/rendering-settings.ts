import { DEFAULT_WEBP_EFFORT } from '../../contract/image-formats.ts';
import { LEAST_WORKER_BYTES } from '../machine-limits.ts';
import { memorySetting, optional, setting, type ValuesOf } from '../setting.ts';
import { bytes, choice, integer, MEBIBYTE, milliseconds, programChoice } from '../setting-forms.ts';

/** Variables of transforms: what is accepted, on how much of the machine, and for whom (contract §6, §11). */
export const renderingTable = {
  MAX_ORIGINAL_BYTES: setting(bytes(1), 50 * MEBIBYTE, 'largest original accepted for a transform'),
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
    'most scans of a JPEG times its pixels',
  ),
  MAX_EDGE_PIXELS: setting(
    integer(1, 1_000_000, 'pixels'),
    262_144,
    'longest edge of what is decoded',
  ),
  MAX_FRAMES: setting(integer(1, 50_000, 'frames'), 1_024, 'most frames of an original'),
  WEBP_EFFORT: setting(
    integer(0, 6, 'libwebp method'),
    DEFAULT_WEBP_EFFORT,
    'effort of the WebP encoder: less is faster and larger (docs/tuning.md); another value renders everything anew',
  ),
  MAX_RESULT_BYTES: setting(bytes(1), 100 * MEBIBYTE, 'largest result of a transform'),
  ORIGINALS_MEMORY_BYTES: memorySetting(
    'ORIGINALS_MEMORY_BYTES',
    bytes(1),
    'memory for originals that are read, rendered or waiting; a larger one is accepted while others hold less than half of it',
  ),
  TRANSFORM_TIMEOUT_MS: setting(
    milliseconds,
    15_000,
    'deadline of one transform, after which its process is killed',
  ),
  WORKERS: optional(
    integer(1, 1_024, 'cores'),
    "cores to render on; a container's CPU quota counts. Each has a process for short renders, with one more in all, and, when they are needed, one of lower priority for long ones",
    { defaultText: 'one per core' },
  ),
  WORKER_MEMORY_BYTES: optional(
    bytes(LEAST_WORKER_BYTES),
    'private memory of the render processes of one core, where the system can bound it: light renders get 288 MiB and `MAX_ORIGINAL_BYTES`, heavy ones the rest. At least 160 MiB more than `MAX_ORIGINAL_BYTES`',
    {
      defaultText:
        '`2684354560`, or what the memory has [left](tuning.md#memory-bound) for all of them',
    },
  ),
  REQUIRE_CONFINEMENT: setting(
    choice('true', 'false'),
    'false',
    '`true`: the service does not start (status 78) unless render processes are confined whole (docs/security.md)',
  ),
  QUEUE_PER_WORKER: setting(
    integer(0, 100_000, 'requests'),
    64,
    'requests that may wait for each core, in each of the two queues',
  ),
  QUEUE_TIMEOUT_MS: setting(
    milliseconds,
    5_000,
    'longest wait; a request with an estimated wait of more than half of it is rejected at once',
  ),
  RATE_LIMIT_REQUESTS: optional(
    integer(1, 1_000_000, 'requests'),
    'renders of a client in each window, where 50 ms count as one (docs/tuning.md); more get a 429',
    { defaultText: 'no limit' },
  ),
  RATE_LIMIT_WINDOW_SECONDS: setting(
    integer(1, 86_400, 'seconds'),
    60,
    'the window; renders are given back evenly over it',
  ),
};

/** Variables of video posters: contract §12. */
export const videoTable = {
  VIDEO_DECODER: setting(
    programChoice('auto', 'off'),
    'auto',
    'program that decodes frames of videos: `auto` takes the `ffmpeg` on `PATH`. Without one, videos have no posters; the log and `darkroom check` say why',
  ),
  VIDEO_DECODER_CONFINEMENT: setting(
    choice('whole', 'best'),
    'whole',
    'walls around it: `whole` uses no decoder that cannot have all of docs/security.md; `best` accepts what the host supports, and counts as `whole` with `REQUIRE_CONFINEMENT=true`',
  ),
  VIDEO_MAX_READ_BYTES: setting(
    bytes(1),
    24 * MEBIBYTE,
    'most bytes that are read of a video for one poster; `MAX_ORIGINAL_BYTES` does not bound videos',
  ),
};

/** Reads which decoder may be used, with which walls. */
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
