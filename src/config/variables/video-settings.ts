import { setting, type ValuesOf } from '../setting.ts';
import { bytes, choice, MEBIBYTE, programChoice } from '../setting-forms.ts';

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
) {
  return {
    program: values.VIDEO_DECODER,
    mayBeWeaker: values.VIDEO_DECODER_CONFINEMENT === 'best' && !requiresConfinement,
    timeoutMs,
  };
}
