import { once } from 'node:events';
import { cpSync } from 'node:fs';
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { beforeEach } from 'vitest';
import { atEnd } from '../support/at-end.ts';
import { defer } from '../support/deferred.ts';
import { createClient, type SendRequest } from '../support/http/http-client.ts';
import { patient } from '../support/patient.ts';
import { closeServer, listenLocally } from '../support/processes/local-server.ts';
import { useNginx } from '../support/processes/nginx.ts';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';
import { SIGNING_KEY } from '../support/signed-urls.ts';
import { signedPathOf } from '../support/sites/external-app.ts';
import { useSiteServer } from '../support/sites/site-server.ts';
import { putInto, useTemporaryDirectory } from '../support/temporary-directory.ts';

/** A request that reached Darkroom, and what came of it. */
const recordOf = ({ method, url: target = '', headers }: IncomingMessage) => ({
  method,
  /** Path and query, as nginx sent them. */
  target,
  headers,
  /** 0 until the response's head has come. */
  status: 0,
  /** Whether Darkroom's Server-Timing has a render. */
  isRendered: false,
  bodyBytes: 0,
});

/** A wire between nginx and Darkroom that counts what goes through it, and can be cut. */
class Relay {
  readonly requests: ReturnType<typeof recordOf>[] = [];
  /** The error that all requests get instead, for those that Darkroom cannot be brought to on demand. */
  scriptedStatus: number | undefined;
  readonly #server = createServer((incoming, outgoing) => {
    this.#forward(incoming, outgoing).catch(() => outgoing.destroy());
  });
  readonly #agent = new Agent({ keepAlive: true });
  #port = 0;
  #targetPort = 0;
  #held = Promise.resolve();

  /** Starts to listen; again on the same port after `cut`. */
  async open(targetPort: number): Promise<number> {
    this.#targetPort = targetPort;
    this.#port = await listenLocally(this.#server, this.#port);
    return this.#port;
  }

  /** As if Darkroom's machine had no process on its port: connections are refused. */
  async cut(): Promise<void> {
    this.#agent.destroy();
    await closeServer(this.#server);
  }

  /** Holds all requests back, once they have been counted, until the function returned is called. */
  hold(): () => void {
    const { promise, resolve } = defer<void>();
    this.#held = promise;
    return resolve;
  }

  /** Requests for a target's path, whatever their query. */
  requestsOf(wanted: string) {
    const [path] = wanted.split('?');
    return this.requests.filter(({ target }) => target.split('?')[0] === path);
  }

  async #forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const entry = recordOf(incoming);
    const { method, target, headers } = entry;
    this.requests.push(entry);
    await this.#held;
    if (this.scriptedStatus !== undefined) {
      entry.status = this.scriptedStatus;
      outgoing.writeHead(entry.status, { 'Cache-Control': 'no-store', 'Retry-After': '1' });
      outgoing.end(JSON.stringify({ code: 'SCRIPTED', message: 'The relay says so.' }));
      return;
    }
    const forwarded = request({
      ...{ host: '127.0.0.1', port: this.#targetPort, agent: this.#agent },
      ...{ method, path: target, headers },
    });
    forwarded.on('error', () => outgoing.destroy());
    incoming.pipe(forwarded);
    const [response] = (await once(forwarded, 'response')) as [IncomingMessage];
    entry.status = response.statusCode ?? 0;
    entry.isRendered = /\brender\b/.test(String(response.headers['server-timing']));
    outgoing.writeHead(entry.status, response.rawHeaders);
    response.on('data', (chunk: Buffer) => {
      entry.bodyBytes += chunk.length;
    });
    await pipeline(response, outgoing);
  }
}

/**
 * Starts client → nginx → relay → Darkroom for the tests of a file, each of them real but for the relay, which only
 * counts, and ends them afterwards. What the relay has counted is forgotten before each test.
 *
 * @param settings environment of Darkroom besides the defaults
 * @param storage a directory to serve, instead of a copy of the samples
 */
export async function useStack(settings: Readonly<Record<string, string>> = {}, storage?: string) {
  const originals = storage ?? (await useTemporaryDirectory()).path;
  if (storage === undefined) cpSync('fixtures/originals', originals, { recursive: true });

  const start = (): Promise<ServiceProcess> =>
    startService({ WORKERS: '2', STORAGE_DIR: originals, ...patient, ...settings });
  const portOf = ({ origin }: ServiceProcess): number => Number(new URL(origin).port);
  let darkroom = await start();
  const relay = new Relay();
  const relayPort = await relay.open(portOf(darkroom));
  const nginx = await useNginx(relayPort, settings.COMPATIBILITY === 'fluxer');
  const stopDarkroom = async (): Promise<void> => {
    await Promise.all([relay.cut(), darkroom.stop()]);
  };
  const connect = (localAddress = '127.0.0.1'): SendRequest =>
    createClient(nginx.port, { connect: { ca: nginx.certificate }, localAddress });
  beforeEach(() => {
    relay.requests.length = 0;
  });
  atEnd(stopDarkroom);
  return {
    nginx,
    relay,
    relayPort,
    request: connect(),
    /** Opens a client of nginx with connections of its own, from an address of this machine. */
    connect,
    /** Asks Darkroom, past nginx and the relay. */
    requestDirectly: (...request: Parameters<SendRequest>) =>
      createClient(portOf(darkroom), { pipelining: 0 })(...request),
    /** Darkroom's storage: a copy of the samples that a test may change. */
    originals,
    put: putInto(originals),
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
  const site = await useSiteServer();
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
