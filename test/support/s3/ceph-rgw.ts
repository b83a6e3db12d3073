import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { findFreePorts } from '../processes/local-server.ts';

const run = promisify(execFile);

/** Start timeout; the start takes one second, rarely six. */
const START_TIMEOUT_MS = 60_000;

declare module 'vitest' {
  interface ProvidedContext {
    /** The gateway of this run, and its credentials. */
    readonly rgw: Awaited<ReturnType<typeof startCluster>>;
  }
}

/**
 * Starts a monitor, one OSD in memory and a RADOS gateway once per run, from Debian's packages `ceph-mon`, `ceph-osd`,
 * `ceph-common` and `radosgw`. Needs no systemd, root or fixed port; its processes end if this process is killed.
 * Throws with the last lines of the logs if the cluster does not start.
 */
export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-ceph-'));
  const daemons: ChildProcess[] = [];
  const stop = async (): Promise<void> => {
    // SIGKILL suffices: all data is in memory.
    await Promise.all(
      daemons.map(async (daemon) => {
        if (daemon.exitCode === null && daemon.kill('SIGKILL')) await once(daemon, 'exit');
      }),
    );
    await rm(directory, { recursive: true, force: true });
  };
  try {
    provide('rgw', await startCluster(directory, daemons));
    return stop;
  } catch (error) {
    const { stdout } = await run('sh', ['-c', 'tail -n 6 *.out *.log'], { cwd: directory });
    await stop();
    throw new Error(`Ceph does not start.\n${stdout}`, { cause: error });
  }
}

async function startCluster(directory: string, daemons: ChildProcess[]) {
  const deadline = AbortSignal.timeout(START_TIMEOUT_MS);
  const [monitorPort = 0, gatewayPort = 0] = await findFreePorts(2);
  const clusterId = randomUUID();
  const osdId = randomUUID();
  const conf = join(directory, 'ceph.conf');
  await writeFile(conf, formatConf(directory, clusterId, monitorPort));
  await Promise.all(['mon', 'osd'].map((name) => mkdir(join(directory, name))));

  const command = (name: string, ...args: string[]) => {
    const options = { timeout: 5_000, killSignal: 'SIGKILL' } as const;
    return retry(deadline, () => run(name, ['--conf', conf, ...args], options));
  };
  const daemon = (name: string, ...args: string[]): void => {
    const log = openSync(join(directory, `${name}.out`), 'a');
    // The daemon ends with this process, even after SIGKILL (prctl(2)).
    const guarded = ['--pdeathsig', 'KILL', name, '--conf', conf, '--foreground', ...args];
    daemons.push(spawn('setpriv', guarded, { stdio: ['ignore', log, log] }));
  };

  const map = join(directory, 'monmap');
  const address = `v1:127.0.0.1:${monitorPort}`;
  await run('monmaptool', ['--create', '--fsid', clusterId, '--addv', 'a', address, map]);
  await command('ceph-mon', '--mkfs', '--id', 'a', '--monmap', map);
  daemon('ceph-mon', '--id', 'a');
  await command('ceph', 'osd', 'new', osdId, '0');
  await command('ceph', 'osd', 'crush', 'add', 'osd.0', '1', 'root=default', 'host=tests');
  await command('ceph-osd', '--id', '0', '--mkfs', '--osd-uuid', osdId, '--no-mon-config');
  daemon('ceph-osd', '--id', '0');

  const accessKeyId = randomBytes(10).toString('hex').toUpperCase();
  const secretAccessKey = randomBytes(20).toString('hex');
  const keys = ['--access-key', accessKeyId, '--secret-key', secretAccessKey];
  const user = ['--uid', 'tests', '--display-name', 'Tests', ...keys];
  await command('radosgw-admin', 'user', 'create', ...user);
  const endpoint = `http://127.0.0.1:${gatewayPort}`;
  // Without tcp_nodelay, a response on a kept connection takes 40 ms: Nagle waits for a delayed ACK.
  const frontend = `beast endpoint=127.0.0.1:${gatewayPort} tcp_nodelay=1`;
  daemon('radosgw', '--name', 'client.gateway', '--rgw-frontends', frontend);
  await retry(deadline, async () => {
    const answer = await fetch(endpoint, { signal: deadline });
    if (!answer.ok) throw new Error(`The gateway responds with HTTP ${answer.status}.`);
  });
  return { endpoint, accessKeyId, secretAccessKey };
}

function formatConf(directory: string, clusterId: string, monitorPort: number): string {
  return `[global]
fsid = ${clusterId}
mon initial members = a
mon host = v1:127.0.0.1:${monitorPort}
public network = 127.0.0.0/8
ms bind msgr2 = false
auth cluster required = none
auth service required = none
auth client required = none
run dir = ${directory}
admin socket =
log file = ${directory}/$name.log
pid file =
mon data = ${directory}/mon
osd data = ${directory}/osd
osd objectstore = memstore
# One OSD, one copy.
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd crush chooseleaf type = 0
# Set before the OSD starts: without authentication, it can send these before it knows the cluster.
osd crush update on start = false
osd class update on start = false
mon max pg per osd = 1000
mon allow pool size one = true
# Each new pool needs a Paxos round, which waits a second by default.
paxos propose interval = 0.05
paxos min wait = 0.01
mon tick interval = 1
`;
}

/** Retries until the deadline: a monitor that has just started can lose a command. */
async function retry(deadline: AbortSignal, work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await work();
      return;
    } catch (error) {
      if (deadline.aborted) throw error;
      await sleep(50);
    }
  }
}
