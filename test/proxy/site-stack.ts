import { afterAll } from 'vitest';
import { canonicalUrlOf } from '../../src/contract/external-url.ts';
import { formatExternalPath } from '../../src/contract/signing/external-path.ts';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';
import { formatSegmentedPath } from '../../tools/documents/external-vectors.ts';
import { startDnsServer } from '../support/sites/dns-server.ts';
import { type NginxSite, startNginxSite } from '../support/sites/nginx-site.ts';
import { type Stack, useStack } from './stack.ts';

const SITE = 'media.site.example';
const key = 'an-example-key-of-thirty-two-bytes-or-more';

/** Signs what a test asks for. */
export const keys = new SigningKeys([key]);

/** The path of a URL, in the opaque form. */
export const opaque = (url: string): string => formatExternalPath(url, keys);

/** The same in the segmented form. */
export const segmented = (url: string): string =>
  formatSegmentedPath(canonicalUrlOf(url) ?? '', keys);

/**
 * Starts a site of somebody else's, with a name, a certificate and redirects, and a stack that may fetch from it, for
 * the tests of a file.
 *
 * @param settings environment of Darkroom besides what leads to the site
 */
export async function useSiteStack(
  settings: Readonly<Record<string, string>> = {},
): Promise<{ readonly site: NginxSite; readonly stack: Stack }> {
  const site = await startNginxSite(SITE);
  const dns = await startDnsServer({ [SITE]: ['127.0.0.1'] });
  afterAll(async () => {
    await site.stop();
    await dns.stop();
  });
  const stack = await useStack({
    EXTERNAL_SIGNING_KEYS: key,
    EXTERNAL_DNS_SERVERS: dns.address,
    EXTERNAL_PORTS: site.ports.join(','),
    EXTERNAL_ALLOWED_NETWORKS: '127.0.0.1',
    NODE_EXTRA_CA_CERTS: site.authorityFile,
    ...settings,
  });
  return { site, stack };
}
