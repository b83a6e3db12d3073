import { outputFormats } from '../../contract/image-formats.ts';
import type { MediaRequest } from '../../contract/media-request.ts';
import { dispositionOf, formatContentDisposition } from './content-disposition.ts';

/**
 * `Content-Disposition` of what a request is answered with: attachments have a name to be shown or saved
 * under, assets have none. A transformed attachment is named after what it became: a `photo.png` that is a
 * WebP now is saved as `photo.webp`.
 *
 * @param contentType of the answer
 */
export function formatMediaDisposition(
  { filename, isVerbatim }: MediaRequest,
  contentType: string,
): string | undefined {
  if (filename === undefined) return undefined;
  const name = isVerbatim ? filename : rename(filename, contentType);
  return formatContentDisposition(dispositionOf(contentType, name), name);
}

function rename(filename: string, mimeType: string): string {
  const format = Object.values(outputFormats).find((row) => row.mimeType === mimeType);
  if (format === undefined) return filename;
  const { stem = filename, extension = '' } =
    /^(?<stem>.+)\.(?<extension>[a-z][a-z0-9]{1,4})$/isu.exec(filename)?.groups ?? {};
  return format.extensions.some((known) => known === extension.toLowerCase())
    ? filename
    : `${stem}.${format.extensions[0]}`;
}
