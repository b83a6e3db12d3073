import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { atEnd } from '../support/at-end.ts';
import { createClient } from '../support/http/http-client.ts';
import { patient } from '../support/patient.ts';
import { findFreePorts } from '../support/processes/local-server.ts';
import { useNginxForReplicas } from '../support/processes/nginx.ts';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';
import { rgw } from '../support/s3/rgw.ts';
import { openBucket } from '../support/s3/s3-bucket.ts';
import { METRICS_TOKEN, withToken } from '../support/telemetry/prometheus-text.ts';

/** Clients close idle connections before the server does. */
const impatient = { keepAliveTimeout: 10_000, keepAliveMaxTimeout: 10_000 };

/** Starts the replicas of `darkroom-replicas.conf` behind nginx, on buckets with the samples, until the file's end. */
export async function useCluster(settings: Readonly<Record<string, string>> = {}) {
  const name = randomUUID();
  const environment = {
    ...{ STORAGE: 's3', S3_BUCKET: `originals-${name}` },
    ...{ RESULT_STORE: 's3', RESULT_S3_BUCKET: `renderings-${name}` },
    ...{ S3_ENDPOINT: rgw.endpoint, S3_REGION: 'us-east-1', AWS_EC2_METADATA_DISABLED: 'true' },
    ...rgw.credentials,
    ADMIN_TOKEN: METRICS_TOKEN,
    ...patient,
    ...settings,
  };
  // Like compose.yaml.
  await promisify(execFile)(process.execPath, ['deploy/prepare-buckets.mjs'], {
    env: { ...process.env, ...environment, SAMPLES_DIR: 'fixtures/originals' },
  });
  const free = await findFreePorts(6);
  const [ports, adminPorts] = [free.slice(0, 3), free.slice(3)];
  const createNth = (index: number) =>
    createReplica(ports[index] ?? 0, adminPorts[index] ?? 0, environment);
  const replicas = [createNth(0), createNth(1), createNth(2)] as const;
  atEnd(() => Promise.all(replicas.map((replica) => replica.stop())));
  await Promise.all(replicas.map((replica) => replica.start()));
  const nginx = await useNginxForReplicas(ports);
  return {
    nginx,
    replicas,
    originals: openBucket(rgw.endpoint, environment.S3_BUCKET),
    request: createClient(nginx.port, impatient),
  };
}

export type Replica = ReturnType<typeof createReplica>;

/** A replica behind nginx with a fixed port. */
function createReplica(
  port: number,
  adminPort: number,
  environment: Readonly<Record<string, string>>,
) {
  const settings = { ...environment, PORT: String(port), ADMIN_PORT: String(adminPort) };
  let service: ServiceProcess | undefined;
  const admin = (path: string, options: RequestInit = {}): Promise<Response> =>
    fetch(`http://127.0.0.1:${adminPort}${path}`, {
      ...options,
      headers: { ...withToken, 'content-type': 'application/json' },
    });
  return {
    start: async () => {
      service = await startService(settings);
    },
    /** Stops the replica, by default with SIGTERM; returns its exit status. */
    stop: async (signal?: NodeJS.Signals) => {
      const status = await service?.stop(signal);
      service = undefined;
      return status ?? null;
    },
    /** Sends a request directly to the replica. */
    request: createClient(port, impatient),
    /** Returns the number of renders since its start. */
    countRenders: async () => {
      const text = await (await admin('/metrics')).text();
      const counts = [...text.matchAll(/^darkroom_queue_wait_seconds_count\{.*\} (\d+)$/gm)];
      if (counts.length !== 2)
        throw new Error(`Expected the waits of two lanes but received:\n${text}`);
      return counts.reduce((sum, [, count]) => sum + Number(count), 0);
    },
    probe: async () => (await admin('/readyz')).status,
    purge: async (request: object) => {
      const response = await admin('/purge', { method: 'POST', body: JSON.stringify(request) });
      return JSON.parse(await response.text());
    },
    /** Runs the command line with the replica's settings; returns its output. */
    run: async (...args: readonly string[]) => {
      const env = { ...settings, PATH: process.env.PATH ?? '' };
      const command = ['bin/darkroom.mjs', ...args];
      return (await promisify(execFile)(process.execPath, command, { env })).stdout;
    },
  };
}
