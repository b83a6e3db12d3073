import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Ask, createClient } from '../support/http/http-client.ts';
import { patient } from '../support/patient.ts';
import { startNginx, type TlsNginx } from '../support/processes/nginx.ts';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';
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

  const start = (): Promise<ServiceProcess> =>
    startService({ WORKERS: '2', STORAGE_DIR: originals, ...patient, ...settings });
  const portOf = ({ origin }: ServiceProcess): number => Number(new URL(origin).port);
  let darkroom = await start();
  const relay = new Relay(portOf(darkroom));
  const nginx = await startNginx(await relay.open());
  const stopDarkroom = async (): Promise<void> => {
    await Promise.all([relay.cut(), darkroom.stop()]);
  };
  return {
    nginx,
    relay,
    ask: createClient(nginx.port, { ca: nginx.certificate }),
    askDirectly: (...request) => createClient(portOf(darkroom), { keepAlive: false })(...request),
    originals,
    stopDarkroom,
    startDarkroom: async () => {
      darkroom = await start();
      await relay.open(portOf(darkroom));
    },
    close: async () => {
      await nginx.stop();
      await stopDarkroom();
      rmSync(folder, { recursive: true });
    },
  };
}
