import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { LOCAL_CREDENTIALS, startLocalS3 } from '../../test/support/local-s3.ts';
import { type FaultKind, isStruck, type Wave } from './fault-waves.ts';
import { listOriginals } from './originals.ts';

/** How late a response is, in milliseconds: within the service's deadline for a first byte, and beyond it. */
const DELAYS_MS: Partial<Record<FaultKind, number>> = {
  'slow responses': 2_000,
  'late responses': 8_000,
};

const ERRORS: Partial<Record<FaultKind, readonly [status: number, code: string]>> = {
  'status 500': [500, 'InternalError'],
  'status 503 SlowDown': [503, 'SlowDown'],
};

/** What is done to the connection after half of a body. */
const HALFWAY: Partial<Record<FaultKind, (response: ServerResponse) => unknown>> = {
  'stalled bodies': () => undefined,
  'reset connections': (response) => response.socket?.resetAndDestroy(),
  'truncated bodies': (response) => response.socket?.end(),
};

/** A real S3 server with all originals, behind a relay that spoils responses on command. */
export interface FaultyOrigin {
  /** For the service: where it is and which credentials it takes. */
  readonly settings: Readonly<Record<string, string>>;
  /** Begins a wave of faults. */
  readonly strike: (wave: Wave) => Promise<void>;
  /** Ends the wave. */
  readonly calm: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Starts the server in this process, and puts the originals into it. */
export async function startFaultyOrigin(): Promise<FaultyOrigin> {
  const s3 = await startLocalS3();
  for (const original of Object.values(listOriginals()).flat()) {
    await s3.put(original.key, original.read());
  }
  let wave: Wave | undefined;
  const server = createServer((asked, response) => void relay(asked, response, s3.port, wave));
  const listen = async (port: number): Promise<number> => {
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return (server.address() as AddressInfo).port;
  };
  const refuse = async (): Promise<void> => {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };
  const port = await listen(0);
  return {
    settings: {
      STORAGE: 's3',
      S3_BUCKET: s3.bucket,
      S3_ENDPOINT: `http://127.0.0.1:${port}`,
      AWS_EC2_METADATA_DISABLED: 'true',
      // Its advice to use a newer Node is not a line of the log.
      AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
      ...LOCAL_CREDENTIALS,
    },
    strike: async (next) => {
      wave = next;
      if (next.kind === 'connections refused') await refuse();
    },
    calm: async () => {
      wave = undefined;
      if (!server.listening) await listen(port);
    },
    close: async () => {
      if (server.listening) await refuse();
      await s3.close();
    },
  };
}

async function relay(
  asked: IncomingMessage,
  response: ServerResponse,
  targetPort: number,
  wave: Wave | undefined,
): Promise<void> {
  const fault = wave !== undefined && isStruck(wave, keyOf(asked)) ? wave.kind : undefined;
  const error = fault && ERRORS[fault];
  if (error !== undefined) {
    const [status, code] = error;
    const body = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code></Error>`;
    response.writeHead(status, { 'content-type': 'application/xml' }).end(body);
    return;
  }
  const delayMs = fault && DELAYS_MS[fault];
  if (delayMs !== undefined) await waitForClient(response, delayMs);
  if (response.destroyed) return;
  const { method, url: path, headers } = asked;
  // With its own Host, which is signed.
  const onward = request({ host: '127.0.0.1', port: targetPort, method, path, headers });
  response.once('close', () => onward.destroy());
  onward.on('error', () => response.destroy());
  onward.once('response', (received) => {
    response.writeHead(received.statusCode ?? 502, received.rawHeaders);
    const half = Math.ceil(Number(received.headers['content-length'] ?? 0) / 2);
    const harm = fault && HALFWAY[fault];
    if (half > 0 && harm !== undefined) spoil(received, response, half, () => harm(response));
    // When one of the two goes, the other one goes too.
    else pipeline(received, response).catch(() => response.destroy());
  });
  onward.end();
}

/** Path style: the bucket's name, then the key. */
function keyOf({ url = '' }: IncomingMessage): string {
  const [path = ''] = url.split('?', 1);
  return decodeURIComponent(path.slice(path.indexOf('/', 1) + 1));
}

/** Passes so many bytes of a body on, and then does its harm. */
function spoil(
  received: IncomingMessage,
  response: ServerResponse,
  bytes: number,
  harm: () => void,
): void {
  let left = bytes;
  received.on('error', () => undefined);
  received.on('data', (chunk: Buffer) => {
    if (left <= 0) return;
    const part = chunk.subarray(0, left);
    left -= part.length;
    const isTaken = response.write(part, left === 0 ? harm : undefined);
    if (left === 0) received.destroy();
    else if (!isTaken) {
      received.pause();
      response.once('drain', () => received.resume());
    }
  });
}

/** Waits, but no longer than the client does. */
async function waitForClient(response: ServerResponse, ms: number): Promise<void> {
  const closed = new Promise((resolve) => response.once('close', resolve));
  await Promise.race([closed, sleep(ms, undefined, { ref: false })]);
}
