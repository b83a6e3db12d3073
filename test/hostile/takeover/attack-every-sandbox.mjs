/**
 * Starts a malicious worker in every working sandbox, next to a service and another worker, and attacks them. Prints as
 * JSON which attacks did harm, checked from outside. Run it as the service's user. Plain JavaScript, because this user
 * may be unable to compile.
 *
 *   node attack-every-sandbox.mjs all DIRECTORY...   the user's directories, which get files of a service
 *   node attack-every-sandbox.mjs abandon SANDBOX    starts a worker that stops its parent, if it can; prints the process
 *                                                    ids of both, and waits for SIGKILL
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  describeWorkers,
  listExposures,
  readConfinement,
} from '../../../dist/workers/confinement/report.js';
import { ForkServer } from '../../../dist/workers/fork-server/client.js';
import { WorkerProcess } from '../../../dist/workers/worker-process.js';

const [mode, ...directories] = process.argv.slice(2);
const dist = join(import.meta.dirname, '../../../dist');
const workerFile = join(dist, 'test-workers/scripted-worker.mjs');
const forkServerFile = join(dist, 'workers/fork-server/main.js');
const environment = { PATH: process.env.PATH };
const createForkServer = () => new ForkServer(forkServerFile, environment, workerFile);
const forkServer = createForkServer();
const log = { info() {}, warn() {}, error() {} };
const SECRET = 'a secret of the service';

/** Starts a process with a secret as the service's user, which stands in for the service. */
async function startDecoy() {
  const program = 'process.stdout.write("x"); setInterval(() => {}, 1000)';
  const decoy = spawn(process.execPath, ['-e', program, SECRET], {
    env: { SECRET },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(decoy.stdout, 'data');
  return decoy;
}

async function startWorker(sandbox, by = forkServer) {
  const start = { sandbox, memoryBytes: 2 ** 30, niceness: 5 };
  const worker = new WorkerProcess(by, start, undefined, log, () => undefined);
  await worker.ready;
  await runAttack(worker, stay);
  return worker;
}

const job = { maxResultBytes: 1_000_000 };
const staying = new AbortController().signal;

/** Runs a function in a worker; it can use only its argument and modules of Node.js. */
async function runAttack(worker, attack, about = {}, timeoutMs = 10_000) {
  const original = Buffer.from(`call ${JSON.stringify({ code: String(attack), about })}`);
  try {
    const outcome = await worker.run({ original, job }, { timeoutMs, signal: staying });
    return outcome.kind === 'rendered' ? Buffer.from(outcome.body).toString() : outcome.kind;
  } catch (error) {
    return `lost ${error.cause?.message ?? error.message}`;
  }
}

const does = async (...words) => (await runAttack(...words)).startsWith('done');

const stateOf = (pid) => {
  try {
    return /^State:\t(\w)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  } catch {
    return undefined;
  }
};
/** Returns the latest child of this process: the fork server, if it was started last. */
const latestChild = () => {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8');
  return Number(children.trim().split(' ').at(-1));
};
const isAlive = (pid) => ![undefined, 'Z', 'X'].includes(stateOf(pid));
const soon = async (isTrue) => {
  for (let round = 0; round < 50; round += 1) {
    if (isTrue()) return true;
    await sleep(20);
  }
  return false;
};

/** Keeps a worker running after its channel closes. */
const stay = () => {
  process.exit = () => undefined;
  setInterval(() => undefined, 1_000);
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => undefined);
};
const kill = ({ pid, signal }) => process.kill(pid, signal);
const read = ({ path }, { fs }) => fs.readFileSync(path, 'utf8');
const readMemory = ({ pid }, { fs }) => {
  const maps = fs.readFileSync(`/proc/${pid}/maps`, 'utf8');
  const [start] = /^[^-]+(?=-\S+ rw-p .*\[heap\]$)/m.exec(maps) ?? [];
  fs.readSync(fs.openSync(`/proc/${pid}/mem`), Buffer.alloc(16), 0, 16, BigInt(`0x${start}`));
};
const hang = () => {
  for (;;);
};
const startProgram = (_, { childProcess }) => {
  const options = { encoding: 'utf8' };
  // Node.js, which every sandbox contains.
  const { error, stdout } = childProcess.spawnSync(process.execPath, ['-p', '6 * 7'], options);
  if (error) throw error;
  return stdout.trim();
};
const connect = (target, { net }) =>
  new Promise((resolve, reject) => net.connect(target, resolve).on('error', reject));

/** Attacks on a file. */
const fileAttacks = [
  ({ path }, { fs }) => fs.truncateSync(path, 0),
  ({ path }, { fs }) => fs.renameSync(path, `${path}.taken`),
  ({ path }, { fs }) => fs.rmSync(path),
];

/** Attacks by their name in the documents; each resolves with whether it did harm. */
const attacks = {
  'stop the service': async (worker, { decoy }) => {
    const isDone = await does(worker, kill, { pid: decoy.pid, signal: 'SIGSTOP' });
    const isStopped = isDone && (await soon(() => stateOf(decoy.pid) === 'T'));
    decoy.kill('SIGCONT');
    return isStopped;
  },
  'kill another worker': async (worker, { sibling }) => {
    await runAttack(worker, kill, { pid: sibling.processId, signal: 'SIGKILL' });
    return (await runAttack(sibling, () => 'here')) !== 'done here' || !isAlive(sibling.processId);
  },
  'see processes': async (worker, { decoy }) =>
    (await runAttack(worker, read, { path: `/proc/${decoy.pid}/cmdline` })).includes(SECRET),
  "read the service's environment and memory": async (worker, { decoy: { pid } }) =>
    (await does(worker, read, { path: `/proc/${pid}/environ` })) ||
    (await does(worker, readMemory, { pid })),
  'read the TLS key': (worker) =>
    anywhere('tls.key', async (path) => (await runAttack(worker, read, { path })).includes(SECRET)),
  'truncate, rename or delete originals and renderings': async (worker) => {
    let isHarmed = false;
    for (const file of ['originals/a', 'results/b']) {
      for (const attack of fileAttacks) {
        isHarmed ||= await anywhere(file, async (path) => {
          await runAttack(worker, attack, { path });
          const isIntact = existsSync(path) && readFileSync(path, 'utf8') === SECRET;
          rmSync(`${path}.taken`, { force: true });
          writeFileSync(path, SECRET);
          return !isIntact;
        });
      }
    }
    return isHarmed;
  },
  'create files': async (worker) => {
    const places = ['/', '/tmp', '/dev/shm', '/proc', ...directories, import.meta.dirname];
    let isCreated = false;
    for (const attack of [
      ({ path }, { fs }) => fs.writeFileSync(path, ''),
      ({ path }, { fs }) => fs.mkdirSync(path),
    ]) {
      for (const place of places) {
        const path = join(place, `made-${process.pid}`);
        isCreated ||= await does(worker, attack, { path });
        rmSync(path, { recursive: true, force: true });
      }
    }
    return isCreated;
  },
  'read files of the system': (worker) => does(worker, read, { path: '/etc/passwd' }),
  'connect to a socket in a directory': (worker) =>
    anywhere('socket', (path) => does(worker, connect, { path })),
  'connect to an abstract socket': (worker, { abstract }) =>
    does(worker, connect, { path: abstract }),
  'use the network': (worker, { port }) => does(worker, connect, { host: '127.0.0.1', port }),
  'start programs': async (worker) => (await runAttack(worker, startProgram)) === 'done 42',
  'be the last to be killed when memory runs out': async (worker) => {
    await runAttack(worker, (_, { fs }) => fs.writeFileSync('/proc/self/oom_score_adj', '0'));
    return readFileSync(`/proc/${worker.processId}/oom_score_adj`, 'utf8') !== '1000\n';
  },
  'be scheduled ahead of the service': async (worker) => {
    await runAttack(worker, (_, { os }) => os.setPriority(0, -5));
    return getPriority(worker.processId) < 0;
  },
  // Attacks the process that would kill the worker.
  'keep running past its deadline': async (_, { found }) => {
    const own = createForkServer();
    const worker = await startWorker(found, own);
    const { processId } = worker;
    await runAttack(worker, kill, { pid: latestChild(), signal: 'SIGKILL' });
    await runAttack(worker, hang, {}, 100);
    const isStillRunning = !(await soon(() => !isAlive(processId)));
    if (isStillRunning) process.kill(processId, 'SIGKILL');
    own.stop();
    return isStillRunning;
  },
  'outlive the service': async (_, { found }) => {
    const words = [import.meta.filename, 'abandon', found.name];
    const service = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'ignore'] });
    const [chunk] = await once(service.stdout, 'data');
    const processIds = chunk.toString().split(' ').map(Number);
    const [processId] = processIds;
    service.kill('SIGKILL');
    const hasOutlived = !(await soon(() => !isAlive(processId)));
    for (const left of processIds.filter(isAlive)) process.kill(left, 'SIGKILL');
    return hasOutlived;
  },
};

async function anywhere(file, isPossibleAt) {
  for (const directory of directories) if (await isPossibleAt(join(directory, file))) return true;
  return false;
}

async function listen(target) {
  const server = createServer((socket) => socket.on('error', () => undefined).destroy());
  server.listen(target);
  await once(server, 'listening');
  return server;
}

async function tryAll(found) {
  const abstract = `\0darkroom-${process.pid}`;
  for (const directory of directories) {
    for (const name of ['originals', 'results'])
      mkdirSync(join(directory, name), { recursive: true });
    for (const name of ['originals/a', 'results/b']) writeFileSync(join(directory, name), SECRET);
    writeFileSync(join(directory, 'tls.key'), SECRET, { mode: 0o600 });
  }
  const servers = [];
  for (const directory of directories) servers.push(await listen(join(directory, 'socket')));
  servers.push(await listen(abstract));
  servers.push(await listen({ host: '127.0.0.1', port: 0 }));
  const { port } = servers.at(-1).address();
  const decoy = await startDecoy();
  const [worker, sibling] = [await startWorker(found), await startWorker(found)];
  const confinement = readConfinement(found, [], { light: worker.processId, heavy: undefined });
  const harm = {};
  for (const [name, attack] of Object.entries(attacks)) {
    harm[name] = await attack(worker, { decoy, sibling, abstract, port, found });
  }
  for (const each of [worker, sibling]) each.kill('test ended');
  decoy.kill('SIGKILL');
  // Closing removes the socket; the next sandbox uses the same name.
  for (const each of servers) await new Promise((resolve) => each.close(resolve));
  return {
    sandbox: found.name,
    confinement,
    text: describeWorkers(confinement),
    isFullySandboxed: listExposures(confinement).length === 0,
    harm,
  };
}

const report = new Map();
for await (const found of forkServer.listSandboxes([])) {
  const { name } = found;
  const trial = await startWorker(found).catch(() => undefined);
  if (trial === undefined) continue;
  trial.kill('test ended');
  if (mode === 'all') report.set(name, await tryAll(found));
  if (mode === 'abandon' && name === directories[0]) {
    const worker = await startWorker(found);
    const { processId } = worker;
    await runAttack(worker, kill, { pid: latestChild(), signal: 'SIGSTOP' }); // would end the worker with the service
    process.stdout.write(`${processId} ${latestChild()}`);
    await sleep(60_000);
  }
}
process.stdout.write(JSON.stringify([...report.values()]));
process.exit(0);
