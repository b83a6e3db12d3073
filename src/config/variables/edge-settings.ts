import { edgeNames } from '../../contract/edge-tags.ts';
import { optional, type ValuesOf } from '../setting.ts';
import { apiToken, apiTokenFile, baseUrl, choice, serviceId } from '../setting-forms.ts';

/** Variables of the CDN in front: contract §15. */
export const edgeTable = {
  EDGE: optional(
    choice(...edgeNames),
    'the CDN in front, which gets tags and purges; needs a list of blocks, beside which its purges are journaled',
    { defaultText: 'none' },
  ),
  EDGE_ZONE: optional(
    serviceId,
    'its zone (Cloudflare), service (Fastly), pull zone (Bunny) or distribution (CloudFront); needed with `EDGE`',
  ),
  EDGE_TOKEN: optional(
    apiToken,
    'token of its API that may purge; needed with `EDGE`, but for CloudFront, which takes the usual `AWS_*` credentials',
    { isSecret: true },
  ),
  EDGE_TOKEN_FILE: optional(apiTokenFile, 'the same from a file', { isSecret: true }),
  EDGE_API: optional(baseUrl, 'base URL of its API', { defaultText: "the CDN's own" }),
};

/** Values that the edge depends on. */
type Values = ValuesOf<typeof edgeTable>;

/** Reads the CDN in front; returns `undefined` without one. */
export function readEdge(values: Values) {
  const { EDGE: edge, EDGE_ZONE: zone } = values;
  if (edge === undefined || zone === undefined) return undefined;
  const token = values.EDGE_TOKEN ?? values.EDGE_TOKEN_FILE;
  return { edge, zone, token, api: values.EDGE_API };
}
