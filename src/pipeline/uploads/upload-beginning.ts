import { MediaError } from '../../contract/errors.ts';
import { sourceFormats } from '../../contract/image-formats.ts';
import type { UploadPartId } from '../../contract/signing/relay-capability.ts';
import { isDecodable } from '../../formats/read-image-facts.ts';
import { SNIFF_BYTES } from '../originals/content-sniff.ts';
import type { UploadBody } from './upload-body.ts';

/** Types of images that are decoded here: an original that is said to be one begins like one. */
const imageTypes: ReadonlySet<string> = new Set([
  ...Object.values(sourceFormats).map(({ mimeType }) => mimeType),
  'image/heif', // the container of HEIC and AVIF
]);

/**
 * Looks at the first bytes of what is said to be an image. Of a part but the first one they are somewhere in the
 * middle.
 *
 * @throws MediaError `UNSUPPORTED_MEDIA_TYPE` where it is none that is decoded here
 */
export async function checkBeginning(
  {
    contentType,
    part,
  }: { readonly contentType: string | undefined; readonly part: UploadPartId | undefined },
  body: UploadBody,
): Promise<void> {
  const [type = ''] = contentType?.split(';') ?? [];
  if (!imageTypes.has(type.trim().toLowerCase())) return;
  if (part !== undefined && part.partNumber !== 1) return;
  const prefix = await body.peek((bytes) => bytes.length >= SNIFF_BYTES || isDecodable(bytes));
  if (isDecodable(prefix)) return;
  const cause = new Error(`The upload is said to be ${contentType}, and does not begin like one.`);
  throw new MediaError('UNSUPPORTED_MEDIA_TYPE', { cause });
}
