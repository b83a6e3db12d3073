import { createCredentialProvider } from '../aws-credentials.ts';
import { Sha256, SignatureV4 } from '../aws-sdk.ts';
import type { CdnProtocol, CdnResponse } from './protocols.ts';

const LIMITED =
  /^(?:TooManyInvalidationsInProgress|Throttling|ThrottlingException|RequestLimitExceeded)$/;

/**
 * `POST /2020-05-31/distribution/{Id}/invalidation` (CloudFront API Reference, "CreateInvalidation"; Developer Guide,
 * "Invalidating content by cache tags"). Tags are items with a leading `#`. A call with the reference and the items of
 * an earlier one is idempotent. The distribution needs `Cache-Tag` in its `CacheTagConfig`.
 */
export function createCloudfront(): CdnProtocol {
  const signer = new SignatureV4({
    credentials: createCredentialProvider(),
    // CloudFront has no regions; requests are signed for this one (AWS General Reference, "CloudFront endpoints").
    region: 'us-east-1',
    service: 'cloudfront',
    sha256: Sha256,
  });
  return {
    base: 'https://cloudfront.amazonaws.com',
    request: async ({ base, zone }, tags, reference) => {
      const { protocol, hostname, port, host, pathname } = new URL(base);
      const path = `/2020-05-31/distribution/${zone}/invalidation`;
      const items = tags.map((tag) => `<Path>#${tag}</Path>`).join('');
      const body =
        '<?xml version="1.0" encoding="UTF-8"?>' +
        '<InvalidationBatch xmlns="http://cloudfront.amazonaws.com/doc/2020-05-31/">' +
        `<CallerReference>${reference}</CallerReference>` +
        `<Paths><Items>${items}</Items><Quantity>${tags.length}</Quantity></Paths>` +
        '</InvalidationBatch>';
      const signed = await signer.sign({
        method: 'POST',
        protocol,
        hostname,
        ...(port !== '' && { port: Number(port) }),
        path: pathname.replace(/\/$/, '') + path,
        query: {},
        headers: { host, 'content-type': 'application/xml' },
        body,
      });
      const { host: _, ...headers } = signed.headers;
      return { path, headers, body };
    },
    findFailure: (response) => {
      if (response.status === 201) return undefined;
      const { code, message } = parseError(response);
      // The message of a 403 may quote the credentials.
      const shown = response.status === 403 ? undefined : message;
      return [`HTTP ${response.status}`, code, shown].filter(Boolean).join(' ');
    },
    isLimited: (response) => LIMITED.test(parseError(response).code ?? ''),
  };
}

function parseError({ body }: CdnResponse) {
  const [, code] = /<Code>([^<]*)<\/Code>/.exec(body) ?? [];
  const [, message] = /<Message>([^<]*)<\/Message>/.exec(body) ?? [];
  return { code, message };
}
