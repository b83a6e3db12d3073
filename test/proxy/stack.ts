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

/** A request that reached Darkroom, with its response. */
const recordOf = ({ method, url: target = '', headers }: IncomingMessage) => ({
  method,
  /** Exact path and query that nginx sent. */
  target,
  headers,
  /** 0 until the head of the response arrives. */
  status: 0,
  /** Whether Darkroom's Server-Timing has a render. */
  isRendered: false,
  bodyBytes: 0,
});

/** A relay between nginx and Darkroom that records requests, and can be cut. */
class Relay {
  readonly requests: ReturnType<typeof recordOf>[] = [];
  /** Replaces all responses with an error that tests cannot provoke in Darkroom. */
  scriptedStatus: number | undefined;
  readonly #server = createServer((incoming, outgoing) => {
    this.#forward(incoming, outgoing).catch(() => outgoing.destroy());
  });
  readonly #agent = new Agent({ keepAlive: true });
  #port = 0;
  #targetPort = 0;
  #paused = Promise.resolve();

  /** Starts listening; after `cut`, on the same port. */
  async open(targetPort: number): Promise<number> {
    this.#targetPort = targetPort;
    this.#port = await listenLocally(this.#server, this.#port);
    return this.#port;
  }

  /** Stops listening, as if Darkroom were not running. */
  async cut(): Promise<void> {
    this.#agent.destroy();
    await closeServer(this.#server);
  }

  /** Records but delays all requests until the returned function is called. */
  pause(): () => void {
    const { promise, resolve } = defer<void>();
    this.#paused = promise;
    return resolve;
  }

  /** Returns the requests for a target's path with any query. */
  requestsOf(wanted: string) {
    const [path] = wanted.split('?');
    return this.requests.filter(({ target }) => target.split('?')[0] === path);
  }

  async #forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const entry = recordOf(incoming);
    const { method, target, headers } = entry;
    this.requests.push(entry);
    await this.#paused;
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
 * Starts client → nginx → relay → Darkroom for the tests of a file. The relay forwards and records requests; each test
 * starts with an empty record. `storage` is a directory to serve, instead of a copy of the samples.
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
    /** Creates a client of nginx with its own connections, from a local address. */
    connect,
    /** Sends a request directly to Darkroom. */
    requestDirectly: (...request: Parameters<SendRequest>) =>
      createClient(portOf(darkroom), { pipelining: 0 })(...request),
    /** Darkroom's storage: a copy of the samples that tests can change. */
    originals,
    put: putInto(originals),
    /** Stops Darkroom's process; its port refuses connections. */
    stopDarkroom,
    /** Restarts it with an empty memory. */
    startDarkroom: async (): Promise<void> => {
      darkroom = await start();
      await relay.open(portOf(darkroom));
    },
  };
}

/** Like `useStack`, with another site that the service may fetch from. */
export async function useSiteStack(settings: Readonly<Record<string, string>> = {}) {
  const site = await useSiteServer();
  const stack = await useStack({
    EXTERNAL_SIGNING_KEYS: SIGNING_KEY,
    EXTERNAL_ALLOWED_NETWORKS: '127.0.0.1',
    EXTERNAL_PORTS: String(site.port),
    ...settings,
  });
  /** Returns the signed path of a file on the site. */
  const externalPath = (path: string, query = ''): string =>
    signedPathOf(`http://127.0.0.1:${site.port}${path}`, query);
  return { ...stack, site, externalPath };
}
