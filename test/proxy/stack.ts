import { cpSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeEach } from 'vitest';
import { atEnd } from '../support/at-end.ts';
import { type Ask, createClient } from '../support/http/http-client.ts';
import { patient } from '../support/patient.ts';
import { useNginx } from '../support/processes/nginx.ts';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';
import { SIGNING_KEY } from '../support/signed-urls.ts';
import { signedPathOf } from '../support/sites/external-app.ts';
import { SiteServer } from '../support/sites/site-server.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';
import { Relay } from './relay.ts';

/**
 * Starts client → nginx → relay → Darkroom for the tests of a file, each of them real but for the relay, which only
 * counts, and ends them afterwards. What the relay has counted is forgotten before each test.
 *
 * @param settings environment of Darkroom besides the defaults
 * @param storage a folder to serve, instead of a copy of the samples
 */
export async function useStack(settings: Readonly<Record<string, string>> = {}, storage?: string) {
  const folder = await useTemporaryFolder();
  const originals = storage ?? join(folder.path, 'originals');
  if (storage === undefined) cpSync('fixtures/originals', originals, { recursive: true });

  const start = (): Promise<ServiceProcess> =>
    startService({ WORKERS: '2', STORAGE_DIR: originals, ...patient, ...settings });
  const portOf = ({ origin }: ServiceProcess): number => Number(new URL(origin).port);
  let darkroom = await start();
  const relay = new Relay(portOf(darkroom));
  const isPlatform = settings.COMPATIBILITY === 'fluxer';
  const relayPort = await relay.open();
  const nginx = await useNginx(relayPort, isPlatform);
  const stopDarkroom = async (): Promise<void> => {
    await Promise.all([relay.cut(), darkroom.stop()]);
  };
  const connect = (localAddress = '127.0.0.1'): Ask =>
    createClient(nginx.port, { connect: { ca: nginx.certificate }, localAddress });
  beforeEach(() => {
    relay.requests.length = 0;
  });
  atEnd(stopDarkroom);
  return {
    nginx,
    relay,
    relayPort,
    /** Asks nginx. */
    ask: connect(),
    /** Opens a client of nginx with connections of its own, from an address of this machine. */
    connect,
    /** Asks Darkroom, past nginx and the relay. */
    askDirectly: (...request: Parameters<Ask>) =>
      createClient(portOf(darkroom), { pipelining: 0 })(...request),
    /** Darkroom's storage: a copy of the samples that a test may change. */
    originals,
    put: async (key: string, bytes: Uint8Array): Promise<void> => {
      const file = join(originals, key);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, bytes);
    },
    /** Ends Darkroom's process; its port refuses connections from then on. */
    stopDarkroom,
    /** Starts it anew, with nothing in its memory. */
    startDarkroom: async (): Promise<void> => {
      darkroom = await start();
      await relay.open(portOf(darkroom));
    },
  };
}

/** The same with a site of somebody else's, which the service may fetch from. */
export async function useSiteStack(settings: Readonly<Record<string, string>> = {}) {
  const site = await SiteServer.use();
  const stack = await useStack({
    EXTERNAL_SIGNING_KEYS: SIGNING_KEY,
    EXTERNAL_ALLOWED_NETWORKS: '127.0.0.1',
    EXTERNAL_PORTS: String(site.port),
    ...settings,
  });
  /** The signed path of something that the site has. */
  const externalPath = (path: string, query = ''): string =>
    signedPathOf(`http://127.0.0.1:${site.port}${path}`, query);
  return { ...stack, site, externalPath };
}
