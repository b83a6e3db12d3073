import { MediaUrls } from '../../src/client/urls.ts';

/** Never called: `tsc` fails if a line below a comment compiles. */
export function buildWrongUrls(urls: MediaUrls): void {
  urls.avatar('1', 'ab', { size: 80, format: 'gif', quality: 'low', animated: true });
  // @ts-expect-error A size that is not listed
  urls.avatar('1', 'ab', { size: 63 });
  // @ts-expect-error A format that is not listed
  urls.avatar('1', 'ab', { format: 'bmp' });
  // @ts-expect-error A quality that is not listed
  urls.avatar('1', 'ab', { quality: 'best' });
  // @ts-expect-error An unknown parameter
  urls.avatar('1', 'ab', { width: 80 });
  // @ts-expect-error An id as a number
  urls.avatar(1, 'ab');
  // @ts-expect-error A missing hash
  urls.avatar('1');
  // @ts-expect-error A splash of embeds is never a GIF
  urls.embedSplash('1', 'ab', { format: 'gif' });
  // @ts-expect-error A sticker is a WebP or a GIF
  urls.sticker('1', { format: 'png' });
  // @ts-expect-error An attachment has no size
  urls.attachment('1', '2', 'a.png', { size: 80 });
  // @ts-expect-error A sound needs its format
  urls.entranceSound('1', 'tada');
  // @ts-expect-error An unknown kind
  urls.wallpaper('1', 'ab');
  // @ts-expect-error A missing address
  new MediaUrls({});
}
