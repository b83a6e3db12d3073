import { type EncodedPacket, EncodedPacketSink, type InputVideoTrack } from 'mediabunny';
import { corruptMedia, tooLargeMedia } from '../../../formats/byte-reader.ts';
import { demultiplex } from './guarded-source.ts';
import { isFileError, type OpenedAv } from './open-av.ts';

/** Maximum bytes of a key frame with its alpha (contract §12). */
const MAX_KEY_FRAME_BYTES = 8 * 2 ** 20;

/** Times of the next candidates if the first key frame is empty, in seconds (contract §12). */
const LATER_TIMES_S = [2, 5, 10];

export interface KeyFrame {
  readonly data: Uint8Array;
  /** Coded frame whose luma is this frame's alpha (WebM). */
  readonly alpha: Uint8Array | undefined;
}

/** Yields the first key frame, then readable ones at later times. @throws MediaError for an unreadable first one */
export async function* readKeyFrames(
  opened: OpenedAv,
  track: InputVideoTrack,
): AsyncGenerator<KeyFrame, void> {
  const { source } = opened;
  const packets = new EncodedPacketSink(track);
  const first = await demultiplex(source, () => findFirst(track));
  const seen = new Set([first.sequenceNumber]);
  yield toKeyFrame(first);
  for (const atS of LATER_TIMES_S) {
    try {
      const later = await demultiplex(source, async () => {
        const found = await packets.getKeyPacket(atS, { metadataOnly: true });
        if (found === null || seen.has(found.sequenceNumber)) return undefined;
        seen.add(found.sequenceNumber);
        checkSize(found);
        const packet = await packets.getKeyPacket(atS);
        return packet === null || (await isMislabelled(track, packet)) ? undefined : packet;
      });
      if (later !== undefined) yield toKeyFrame(later);
    } catch (error) {
      if (!isFileError(error)) throw error;
    }
  }
}

/** Returns the first key frame, which may be damaged if the index is wrong. */
async function findFirst(track: InputVideoTrack): Promise<EncodedPacket> {
  const packets = new EncodedPacketSink(track);
  const found = await packets.getFirstKeyPacket({ metadataOnly: true });
  if (found === null) throw corruptMedia('no key frame');
  checkSize(found);
  const packet = await packets.getFirstKeyPacket();
  if (packet === null) throw corruptMedia('the file ends within the first key frame');
  if (await isMislabelled(track, packet))
    throw corruptMedia('the first key frame is not a key frame');
  return packet;
}

async function isMislabelled(track: InputVideoTrack, packet: EncodedPacket): Promise<boolean> {
  return (await track.determinePacketType(packet)) === 'delta';
}

function checkSize({ byteLength, sideData }: EncodedPacket): void {
  const bytes = byteLength + (sideData.alphaByteLength ?? 0);
  if (bytes > MAX_KEY_FRAME_BYTES) throw tooLargeMedia(`a key frame of ${bytes} bytes`);
}

function toKeyFrame({ data, sideData }: EncodedPacket): KeyFrame {
  return { data, alpha: sideData.alpha };
}
