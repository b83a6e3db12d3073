import {
  type EncodedPacket,
  EncodedPacketSink,
  type InputVideoTrack,
  type PacketRetrievalOptions,
} from 'mediabunny';
import { corruptMedia, tooLargeMedia } from '../../../formats/byte-reader.ts';
import { demultiplex } from './guarded-source.ts';
import { isFault, type OpenedMoving } from './open-moving.ts';

/** Limit of a key frame, its alpha included (contract §12). */
const MAX_KEY_FRAME_BYTES = 8 * 2 ** 20;

/** Moments whose key frames follow if the first one is empty, in seconds (contract §12). */
const LATER_S = [2, 5, 10];

/** Samples that an index may name as key frames at its beginning although they are none. */
const MAX_FALSE_KEYS = 4;

/** One coded key frame. */
export interface KeyFrame {
  readonly data: Uint8Array;
  /** Coded frame whose luma is the alpha of this one (WebM). */
  readonly alpha: Uint8Array | undefined;
}

/**
 * Yields the key frames that may become the poster, in their order: the first one, then those at later moments, as far
 * as they are others and can be read.
 *
 * @throws MediaError if the first one is missing, cut off or too large; errors of the source
 */
export async function* readKeyFrames(
  opened: OpenedMoving,
  track: InputVideoTrack,
): AsyncGenerator<KeyFrame, void> {
  const { source } = opened;
  const packets = new EncodedPacketSink(track);
  const first = await demultiplex(source, () => findFirst(track));
  const seen = new Set([first.sequenceNumber]);
  yield toKeyFrame(first);
  for (const atS of LATER_S) {
    try {
      const later = await demultiplex(source, async () => {
        const found = await packets.getKeyPacket(atS, { metadataOnly: true });
        if (found === null || seen.has(found.sequenceNumber)) return undefined;
        seen.add(found.sequenceNumber);
        checkSize(found);
        const packet = await packets.getKeyPacket(atS);
        return packet === null || (await isFalseKey(track, packet)) ? undefined : packet;
      });
      if (later !== undefined) yield toKeyFrame(later);
    } catch (error) {
      if (!isFault(error)) throw error;
    }
  }
}

/** Returns the first key frame; passes over samples at the beginning that an index names and that are none. */
async function findFirst(track: InputVideoTrack): Promise<EncodedPacket> {
  const packets = new EncodedPacketSink(track);
  let next = (options: PacketRetrievalOptions) => packets.getFirstKeyPacket(options);
  for (let tries = 0; tries < MAX_FALSE_KEYS; tries += 1) {
    const found = await next({ metadataOnly: true });
    if (found === null) break;
    checkSize(found);
    const packet = await next({});
    if (packet === null) throw corruptMedia('the file ends within the first key frame');
    if (!(await isFalseKey(track, packet))) return packet;
    next = (options) => packets.getNextKeyPacket(packet, options);
  }
  throw corruptMedia('no key frame');
}

async function isFalseKey(track: InputVideoTrack, packet: EncodedPacket): Promise<boolean> {
  return (await track.determinePacketType(packet)) === 'delta';
}

function checkSize({ byteLength, sideData }: EncodedPacket): void {
  const bytes = byteLength + (sideData.alphaByteLength ?? 0);
  if (bytes > MAX_KEY_FRAME_BYTES) throw tooLargeMedia(`a key frame of ${bytes} bytes`);
}

function toKeyFrame({ data, sideData }: EncodedPacket): KeyFrame {
  return { data, alpha: sideData.alpha };
}
