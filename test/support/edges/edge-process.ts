import { expect, onTestFinished } from 'vitest';
import { findFreePorts } from '../processes/free-ports.ts';
import { type ServiceProcess, startService } from '../processes/service-process.ts';
import { withToken } from '../telemetry/prometheus-text.ts';
import { AWS_KEYS } from './aws-signature.ts';
import { edgeSettings } from './edge-app.ts';
import { EDGE_TOKEN, type EdgeName, startEdge } from './edge-server.ts';

/** Purges in the journal when the process is killed, a key each. */
const PURGES = 12;

/** Members of the responses of the routes of purges. */
interface Body {
  readonly id: string;
  readonly status: string;
  readonly reason?: string;
  readonly count: number;
}

/**
 * Starts a replica as a process.
 *
 * @param place settings of the place of the list
 */
export async function startReplica(
  name: EdgeName,
  url: string,
  place: Readonly<Record<string, string>>,
) {
  const [port = 0] = await findFreePorts(1);
  const service: ServiceProcess = await startService({
    ...edgeSettings(name, { url }),
    ...place,
    ...{ ADMIN_PORT: String(port), TRANSFORM_TIMEOUT_MS: '1000' },
    ...(name === 'cloudfront' && {
      AWS_ACCESS_KEY_ID: AWS_KEYS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: AWS_KEYS.secretAccessKey,
    }),
  });
  onTestFinished(async () => void (await service.stop('SIGKILL')));
  const ask = async (path: string, body?: object) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { ...withToken, 'content-type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Body };
  };
  return { service, ask };
}

/** Kills a replica in the middle of its purges; another one, or its next start, ends them. */
export async function killInTheMiddle(
  name: EdgeName,
  isRestarted: boolean,
  place: Readonly<Record<string, string>>,
): Promise<void> {
  const edge = await startEdge(name);
  const replica = await startReplica(name, edge.url, place);
  const other = isRestarted ? undefined : await startReplica(name, edge.url, place);
  // The first call is taken; the second one hangs, and the process is killed meanwhile.
  edge.faults.push('failed', 'hang');
  const ids: string[] = [];
  for (let index = 0; index < PURGES; index += 1) {
    const { status, body } = await replica.ask('/purge', { assets: [`emojis/${index}`] });
    expect(status).toBe(202);
    ids.push(body.id);
  }
  await expect.poll(() => edge.underWay()).toBe(1);
  await expect.poll(() => edge.statuses.length).toBe(2);
  await replica.service.stop('SIGKILL');
  const taker = other ?? (await startReplica(name, edge.url, place));
  const read = async () => (await taker.ask('/purges')).body.count;
  expect(await read()).toBe(PURGES);
  await expect.poll(read, { timeout: 100_000, interval: 500 }).toBe(0);
  for (const id of ids) expect((await taker.ask(`/purges/${id}`)).body.status).toBe('done');
  expect(edge.counts().size).toBe(PURGES);
  expect(Math.min(...edge.counts().values())).toBeGreaterThanOrEqual(2);
  for (const { service } of [replica, taker]) {
    expect(service.output()).not.toContain(EDGE_TOKEN);
    expect(service.output()).not.toContain(AWS_KEYS.accessKeyId);
  }
}
