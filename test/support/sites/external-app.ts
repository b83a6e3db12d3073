import { formatExternalPath } from '../../../src/contract/signing/external-path.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';
import type { SiteDoubles } from '../../../src/storage/remote/open-sites.ts';
import { createClient, type SendRequest } from '../http/http-client.ts';
import { SIGNING_KEY } from '../signed-urls.ts';
import { type TestAppOptions, useTestApp } from '../test-app.ts';
import { useSiteServer } from './site-server.ts';
import { ScriptedResolver } from './test-sites.ts';

const keys = new SigningKeys([SIGNING_KEY]);

export const SITE = 'site.test';

/** The service, and another site on this machine. */
export type ExternalApp = Awaited<ReturnType<typeof useExternalApp>>;

/** Returns the signed path of a URL. */
export function signedPathOf(url: string, query = ''): string {
  return `${formatExternalPath(url, keys)}${query && '?'}${query}`;
}

/** Resolves with the status of a response, or with `cut` if it is truncated. */
export const outcomeOf = (response: ReturnType<SendRequest>): Promise<number | 'cut'> =>
  response.then(
    ({ status }) => status,
    () => 'cut',
  );

export type ExternalAppOptions = TestAppOptions & {
  readonly limits?: SiteDoubles['limits'];
  /** Ports of further sites. */
  readonly ports?: readonly number[];
};

/** Starts the service and a site until the end of the test or file. */
export async function useExternalApp({
  settings = {},
  limits = {},
  ports = [],
  ...options
}: ExternalAppOptions = {}) {
  const site = await useSiteServer();
  const resolver = new ScriptedResolver();
  const dialled: string[] = [];
  resolver.set(SITE, ['127.0.0.1']);
  const app = await useTestApp({
    logged: 'info',
    ...options,
    settings: {
      EXTERNAL_SIGNING_KEYS: SIGNING_KEY,
      EXTERNAL_PORTS: ['80', '443', site.port, ...ports].join(),
      EXTERNAL_ALLOWED_NETWORKS: '127.0.0.1/32',
      ...settings,
    },
    siteDoubles: { limits, resolver, onDial: (address) => dialled.push(address) },
  });
  const port = await app.listen();
  const client = createClient(port);
  const urlOf = (path: string): string => `http://${SITE}:${site.port}${path}`;
  const requestUrl = (url: string, query?: string, request?: Parameters<SendRequest>[1]) =>
    client(signedPathOf(url, query), request);
  return {
    ...app,
    site,
    resolver,
    /** Addresses that were dialled. */
    dialled,
    port,
    urlOf,
    /** Requests any target from the service. */
    requestTarget: client,
    requestUrl,
    /** Requests a path of the site through the service. */
    request: (path: string, ...rest: [query?: string, options?: Parameters<SendRequest>[1]]) =>
      requestUrl(urlOf(path), ...rest),
  };
}
