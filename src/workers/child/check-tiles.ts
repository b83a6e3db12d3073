import { MediaError } from '../../contract/errors.ts';
import { ByteReader } from '../../formats/byte-reader.ts';
import { openHeif } from '../../formats/heif/heif-file.ts';
import { withPrimaryItem } from '../../formats/heif/heif-preparation.ts';
import type { RenderJob } from '../../pipeline/render/render-job.ts';
import { openOriginal } from './open-original.ts';

/**
 * Decodes the tiles of an AVIF grid one by one, before they are decoded together: of a tile that it cannot decode,
 * libheif inside of libvips says nothing, and leaves it green. Few AVIFs are grids; of those it takes the time again.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` where one cannot be decoded
 */
export async function checkTiles(avif: Uint8Array, job: RenderJob): Promise<void> {
  const heif = openHeif(new ByteReader(avif, 'AVIF'));
  if (heif === undefined || heif.types.get(heif.primary) !== 'grid') return;
  for (const tile of new Set(heif.sourcesOf(heif.primary))) {
    const alone = openOriginal(withPrimaryItem(avif, heif, tile), job, undefined, 'warning');
    try {
      await alone.extract({ left: 0, top: 0, width: 1, height: 1 }).raw().toBuffer();
    } catch (cause) {
      throw new MediaError('UNPROCESSABLE_MEDIA', { cause });
    }
  }
}
