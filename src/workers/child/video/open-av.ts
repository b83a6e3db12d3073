import {
  FLAC,
  Input,
  type InputAudioTrack,
  type InputTrack,
  type InputVideoTrack,
  Logging,
  LogLevel,
  MATROSKA,
  Mp4InputFormat,
  OGG,
  WAVE,
  WEBM,
} from 'mediabunny';
import { MediaError } from '../../../contract/errors.ts';
import type { AvContainer, PosterError } from '../../../formats/video/av-metadata.ts';
import { sniffAv } from '../../../formats/video/sniff-av.ts';
import type { BlockCache } from './block-cache.ts';
import { demultiplex, type GuardedSource, MAX_INDEX_BYTES } from './guarded-source.ts';

const PREFIX_BYTES = 128;

/** Codecs of covers and chapter pictures, which do not count as video (contract §12). */
const COVER_CODECS = ['jpeg', 'png ', 'gif ', 'tiff', 'bmp '];

/** ISO format that accepts every file: QuickTime files may begin with any box. */
class IsoFormat extends Mp4InputFormat {
  async _canReadInput(): Promise<boolean> {
    return true;
  }
}

const iso = new IsoFormat();
const formats = {
  mp4: iso,
  mov: iso,
  webm: WEBM,
  matroska: MATROSKA,
  ogg: OGG,
  wav: WAVE,
  flac: FLAC,
};

/** The demultiplexer would write warnings about damaged files to the console. */
Logging.level = LogLevel.Silent;

export interface OpenedAv {
  readonly cache: BlockCache;
  readonly source: GuardedSource;
  readonly tracks: readonly InputTrack[];
  readonly video: InputVideoTrack | undefined;
  readonly audioTracks: readonly InputAudioTrack[];
}

export async function sniffContainer(cache: BlockCache): Promise<AvContainer | undefined> {
  return sniffAv(await cache.read(0, Math.min(PREFIX_BYTES, cache.sizeBytes)));
}

/** Reads the index of a container. @throws MediaError if it is missing, damaged or too large; errors of the source */
export async function openAv(cache: BlockCache, source: GuardedSource): Promise<OpenedAv> {
  const input = new Input({ source, formats: [formats[source.container]] });
  cache.limit(MAX_INDEX_BYTES);
  const opened = await demultiplex(source, async () => {
    const tracks = await input.getTracks();
    const videos: InputVideoTrack[] = [];
    const enabled: InputVideoTrack[] = [];
    for (const track of tracks.filter((each) => each.isVideoTrack())) {
      const isEnabled = (await track.getDisposition()).default;
      const index = source.iso?.tracks.find(({ id }) => id === track.id);
      const isPicture = index !== undefined && COVER_CODECS.includes(index.entry);
      if (isPicture && (!isEnabled || index.samples <= 1)) continue;
      videos.push(track);
      if (isEnabled) enabled.push(track);
    }
    return { tracks, video: enabled[0] ?? videos[0] };
  });
  cache.limit();
  const audioTracks = opened.tracks.filter((track) => track.isAudioTrack());
  return { cache, source, ...opened, audioTracks };
}

/** Whether the file caused an error, not its source. */
export function isFileError(error: unknown): error is MediaError & Pick<PosterError, 'code'> {
  return (
    error instanceof MediaError &&
    (error.code === 'UNPROCESSABLE_MEDIA' || error.code === 'MEDIA_TOO_LARGE')
  );
}
