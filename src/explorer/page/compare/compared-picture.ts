import type { Exchange } from '../exchange.ts';

/** One of the two pictures, and what it took. */
export interface ComparedPicture {
  readonly exchange: Exchange;
  readonly url: string;
  readonly width: number;
  readonly height: number;
}

/** The picture of a response; `undefined` where it has none. */
export function toPicture(exchange: Exchange): ComparedPicture | undefined {
  const { body } = exchange;
  if (body.kind !== 'picture' || body.width === 0) return undefined;
  const { width, height } = body;
  return { exchange, url: URL.createObjectURL(body.blob), width, height };
}

/** Lets go of the bytes of pictures that are not shown any more. */
export function freePictures(pictures: readonly (ComparedPicture | undefined)[]): void {
  for (const picture of pictures) if (picture !== undefined) URL.revokeObjectURL(picture.url);
}
