import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { LOCAL_CREDENTIALS } from '../../test/support/local-s3.ts';
import type { Wave } from './fault-waves.ts';

/** What the origin's process is told. */
export type OriginCommand =
  | { readonly kind: 'strike'; readonly wave: Pick<Wave, 'index' | 'kind'> }
  | { readonly kind: 'calm' };

/** What it tells. */
export type OriginReport =
  | { readonly kind: 'ready'; readonly endpoint: string; readonly bucket: string }
  | { readonly kind: 'done' };

/** An S3 server with all originals, behind a relay that spoils answers on command. */
export interface FaultyOrigin {
  /** For the service: where it is and who may read it. */
  readonly settings: Readonly<Record<string, string>>;
  readonly strike: (wave: Wave) => Promise<void>;
  readonly calm: () => Promise<void>;
  readonly close: () => void;
}

/** The SDK would advise a newer Node on standard error. */
const QUIET_SDK = { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true' } as const;

/**
 * Starts the origin in a process of its own, so that its work disturbs no measurement.
 *
 * @throws Error if it ends instead
 */
export async function startOrigin(): Promise<FaultyOrigin> {
  const child = fork(new URL('./origin-process.js', import.meta.url), {
    env: { ...process.env, ...QUIET_SDK },
  });
  const ready = await nextReport(child);
  if (ready.kind !== 'ready') throw new Error('The origin is not ready.');
  const command = async (message: OriginCommand): Promise<void> => {
    const done = nextReport(child);
    child.send(message);
    await done;
  };
  return {
    settings: {
      STORAGE: 's3',
      S3_BUCKET: ready.bucket,
      S3_ENDPOINT: ready.endpoint,
      AWS_EC2_METADATA_DISABLED: 'true',
      // Its advice is not a line of the log.
      ...QUIET_SDK,
      ...LOCAL_CREDENTIALS,
    },
    strike: (wave) => command({ kind: 'strike', wave: { index: wave.index, kind: wave.kind } }),
    calm: () => command({ kind: 'calm' }),
    close: () => {
      if (child.connected) child.disconnect();
    },
  };
}

async function nextReport(child: ChildProcess): Promise<OriginReport> {
  const settled = new AbortController();
  const { signal } = settled;
  try {
    const ended = once(child, 'exit', { signal }).then(() => {
      throw new Error('The origin has ended.');
    });
    const [report] = (await Promise.race([once(child, 'message', { signal }), ended])) as [
      OriginReport,
    ];
    return report;
  } finally {
    settled.abort();
  }
}
