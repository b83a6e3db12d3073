import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startNginx, type TlsNginx } from '../support/nginx.ts';
import { patient } from '../support/patient.ts';
import { startFlags } from '../support/start-flags.ts';
import { type Ask, createPlainClient, createTlsClient } from './client.ts';
import { Relay } from './relay.ts';

/** Client → nginx → relay → Darkroom, each of them real but for the relay, which only counts. */
export interface Stack {
  readonly nginx: TlsNginx;
  readonly relay: Relay;
  /** Asks nginx. */
  readonly ask: Ask;
  /** Asks Darkroom, past nginx and the relay. */
  readonly askDirectly: Ask;
  /** Darkroom's storage: a copy of the samples that a test may change. */
  readonly originals: string;
  /** Ends Darkroom's process; its port refuses connections from then on. */
  readonly stopDarkroom: () => Promise<void>;
  /** Starts it anew, with nothing in its memory. */
  readonly startDarkroom: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** @param settings environment of Darkroom besides the defaults */
export async function startStack(settings: Readonly<Record<string, string>> = {}): Promise<Stack> {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-proxy-'));
  const originals = join(folder, 'originals');
  cpSync('fixtures/originals', originals, { recursive: true });

  let darkroom = await startDarkroom({ STORAGE_DIR: originals, ...settings });
  const relay = new Relay(darkroom.port);
  const nginx = await startNginx(await relay.open());
  const stopDarkroom = async (): Promise<void> => {
    await Promise.all([relay.cut(), darkroom.stop()]);
  };
  return {
    nginx,
    relay,
    ask: createTlsClient(nginx.port, nginx.certificate),
    askDirectly: createPlainClient(() => darkroom.port),
    originals,
    stopDarkroom,
    startDarkroom: async () => {
      darkroom = await startDarkroom({ STORAGE_DIR: originals, ...settings });
      await relay.open(darkroom.port);
    },
    close: async () => {
      await nginx.stop();
      await stopDarkroom();
      rmSync(folder, { recursive: true });
    },
  };
}

interface Darkroom {
  readonly port: number;
  readonly stop: () => Promise<void>;
}

async function startDarkroom(settings: Readonly<Record<string, string>>): Promise<Darkroom> {
  const child = spawn(process.execPath, [...startFlags, 'dist/main.js'], {
    env: {
      PATH: process.env.PATH ?? '',
      PORT: '0',
      WORKERS: '2',
      EXPLORER: 'off',
      ...patient,
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  return {
    port: await portOf(child),
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
      process.off('exit', kill);
    },
  };
}

/** From the first line of its log; the rest is read, too, lest the pipe fills up. */
function portOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      const port = /"address":"http:\/\/127\.0\.0\.1:(\d+)"/.exec(text)?.[1];
      if (port !== undefined) resolve(Number(port));
    });
    child.once('close', () => reject(new Error(`Darkroom does not start: ${text}`)));
  });
}
