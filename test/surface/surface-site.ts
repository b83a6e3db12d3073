import { useSiteServer } from '../support/sites/site-server.ts';
import { KEYS } from './signed-oracle.ts';
import type { Original } from './surface-storage.ts';

type SiteFile = readonly [path: string, of: Original, headers?: Readonly<Record<string, string>>];

const HOUR = 'public, max-age=3600';

/** Another site on this machine with ranges; its files by URL. */
export async function startSurfaceSite(originals: ReadonlyMap<string, Original>) {
  const site = await useSiteServer();
  const origin = `http://127.0.0.1:${site.port}`;
  const attachment = (name: string): Original => {
    const original = originals.get(`attachments/1/2/${name}`);
    if (original === undefined) throw new Error(name);
    return original;
  };
  const photo = attachment('photo.png');
  const files: readonly SiteFile[] = [
    ['/photo.png', photo, { 'cache-control': 'max-age=60' }],
    ['/a%20b/c%3f?w=1&h=%2F2', photo, { 'cache-control': 'max-age=9, s-maxage=86400' }],
    ['/wave.gif?', attachment('wave.gif'), { expires: 'Thu, 01 Jan 2099 00:00:00 GMT' }],
    ['/', attachment('no extension'), { 'cache-control': 'no-store' }],
    ['/weak.png', photo, { etag: 'W/"1"' }],
    ['/cut.png', attachment('cut.png')],
    ['/page.html', attachment('page.html'), { 'content-type': 'image/png' }],
    ['/cat.svg', attachment('cat.svg')],
    ['/romeo.txt', attachment('romeo.txt')],
  ];
  const lifetimes: Readonly<Record<string, string>> = {
    '/a%20b/c%3f?w=1&h=%2F2': 'public, max-age=86400',
    '/wave.gif?': 'public, max-age=604800',
  };
  for (const [path, { bytes }, headers = {}] of files) {
    site.serveRanges(path, bytes, headers);
  }
  const known = files.map(([path, { bytes, transformed, contentType }, headers]) => {
    const ofSite = {
      hasValidator: headers?.etag === undefined,
      cacheControl: lifetimes[path] ?? HOUR,
    };
    const isShown = contentType.startsWith('image/') && contentType !== 'image/svg+xml';
    const shown = isShown ? {} : { shown: 415 as const };
    return [
      new URL(path, origin).href,
      { bytes, transformed, contentType, disposition: 'inline' as const, ofSite, ...shown },
    ] as const;
  });
  return {
    origin,
    originals: new Map<string, Original>(known),
    /** Settings of a service that enforces attachment signatures, and may fetch from this site. */
    settings: {
      ATTACHMENT_SIGNING: 'enforce',
      ATTACHMENT_SIGNING_KEYS: KEYS.join(),
      EXTERNAL_SIGNING_KEYS: KEYS.join(),
      EXTERNAL_ALLOWED_NETWORKS: '127.0.0.1/32',
      EXTERNAL_PORTS: `80,443,${site.port}`,
    },
  };
}
