import { type Fault, FaultProxy } from '../../../test/support/s3/fault-proxy.ts';
import { LOCAL_CREDENTIALS, startLocalS3 } from '../../../test/support/s3/local-s3.ts';
import { listOriginals } from '../originals.ts';
import type { WaveKind } from './waves.ts';

/** What the service still feels of a wave, in milliseconds: until it gives up on what hangs. */
export const HANGING_SHADOW_MS = 14_000;
export const SHADOW_MS = 2_000;

function createError(status: string, code: string): Fault {
  const body = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code></Error>`;
  const head = `HTTP/1.1 ${status}\r\nContent-Type: application/xml\r\nContent-Length: ${body.length}`;
  return { kind: 'answer', bytes: `${head}\r\n\r\n${body}` };
}

/** What is done to every response. */
const faults: Readonly<Record<string, Fault>> = {
  'no responses': { kind: 'hang' },
  'stalled bodies': { kind: 'stall', afterBytes: 0 },
  'reset connections': { kind: 'reset', afterBytes: 0 },
  'truncated bodies': { kind: 'cut', afterBytes: 0 },
  'status 500': createError('500 Internal Server Error', 'InternalError'),
  'status 503 SlowDown': createError('503 Slow Down', 'SlowDown'),
  'slow responses': { kind: 'trickle', bytes: 2 ** 16 },
};

/** A store of all originals that can be made to fail. */
export interface FaultyOrigin {
  /** For the service: where it is. */
  readonly settings: Readonly<Record<string, string>>;
  readonly kinds: readonly WaveKind[];
  readonly close: () => Promise<void>;
}

/** Starts a real S3 server in this process, with all originals, behind a proxy that spoils responses. */
export async function startFaultyBucket(): Promise<FaultyOrigin> {
  const s3 = await startLocalS3();
  for (const original of Object.values(listOriginals()).flat()) {
    await s3.put(original.key, original.read());
  }
  const proxy = new FaultProxy(s3.port);
  await proxy.listen();
  const kinds = Object.entries(faults).map(([name, fault]): WaveKind => {
    const isHanging = fault.kind === 'hang' || fault.kind === 'stall';
    return {
      name,
      victim: 'originals',
      isHarmless: fault.kind === 'trickle',
      shadowMs: isHanging ? HANGING_SHADOW_MS : SHADOW_MS,
      begin: () => proxy.spoil(fault),
      end: () => proxy.heal(),
    };
  });
  kinds.push({
    name: 'connections refused',
    victim: 'originals',
    shadowMs: SHADOW_MS,
    begin: () => proxy.refuse(),
    end: () => proxy.listen(),
  });
  return {
    settings: {
      STORAGE: 's3',
      S3_BUCKET: s3.bucket,
      S3_ENDPOINT: proxy.endpoint,
      AWS_EC2_METADATA_DISABLED: 'true',
      // Its advice to use a newer Node is not a line of the log.
      AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
      ...LOCAL_CREDENTIALS,
    },
    kinds,
    close: async () => {
      await proxy.refuse();
      await s3.close();
    },
  };
}
