/**
 * Starts a malicious worker in every sandbox that works here, beside a service of ours and another worker, and tries
 * what it can do to them. Prints what was possible, judged from outside, as JSON. Run as whom the service is to be run; plain
 * JavaScript, since that may be a user that can do nothing else.
 *
 *   node attack-every-sandbox.mjs all FOLDER...      each the user's own; what belongs to a service is put there
 *   node attack-every-sandbox.mjs abandon SANDBOX    starts a worker that stops what has started it, if it can; prints the
 *                                                process ids of both, and waits to be killed
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  describeConfinement,
  listDangers,
  readConfinement,
} from '../../../dist/workers/confinement/report.js';
import { WorkerProcess } from '../../../dist/workers/worker-process.js';
import { WorkerStarter } from '../../../dist/workers/worker-starter.js';

const [mode, ...folders] = process.argv.slice(2);
const workerFile = fileURLToPath(
  new URL('../../../dist/test-workers/malicious-worker.mjs', import.meta.url),
);
const starterFile = fileURLToPath(
  new URL('../../../dist/workers/starter/main.js', import.meta.url),
);
const environment = { PATH: process.env.PATH };
const createStarter = () => new WorkerStarter({ starterFile, workerFile, environment });
const starter = createStarter();
const log = { info() {}, warn() {}, error() {} };
const SECRET = 'a secret of the service';

/** A process of the service's user that holds a secret; what is done to it would be done to the service. */
async function startDecoy() {
  const program = 'process.stdout.write("x"); setInterval(() => {}, 1000)';
  const decoy = spawn(process.execPath, ['-e', program, SECRET], {
    env: { SECRET },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(decoy.stdout, 'data');
  return decoy;
}

async function startWorker(sandbox, by = starter) {
  const worker = new WorkerProcess(
    { starter: by, sandbox, memoryBytes: 2 ** 30, niceness: 5, frames: undefined, log },
    () => undefined,
  );
  await worker.ready;
  return worker;
}

const job = { maxResultBytes: 1_000_000 };
const staying = new AbortController().signal;

async function ask(worker, attack, about = {}) {
  const original = Buffer.from(JSON.stringify({ attack, ...about }));
  try {
    const outcome = await worker.run({ original, job }, { timeoutMs: 10_000, signal: staying });
    return outcome.kind === 'rendered' ? Buffer.from(outcome.body).toString() : outcome.kind;
  } catch (error) {
    return `lost ${error.cause?.message ?? error.message}`;
  }
}

const stateOf = (pid) => {
  try {
    return /^State:\t(\w)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  } catch {
    return undefined;
  }
};
/** The latest child of ours, which is what starts workers where that was started last. */
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

/** Every attack by its name in the documents; resolves with whether it did harm. */
const attacks = {
  'stop the service': async (worker, { decoy }) => {
    const outcome = await ask(worker, 'stop', { pid: decoy.pid });
    const isStopped = outcome.startsWith('done') && (await soon(() => stateOf(decoy.pid) === 'T'));
    decoy.kill('SIGCONT');
    return isStopped;
  },
  'kill another worker': async (worker, { sibling }) => {
    await ask(worker, 'kill', { pid: sibling.processId });
    return (
      (await ask(sibling, 'list', { path: '/' })).startsWith('lost') || !isAlive(sibling.processId)
    );
  },
  'see processes': async (worker, { decoy }) => {
    const seen = await ask(worker, 'read', { path: `/proc/${decoy.pid}/cmdline` });
    return seen.includes(SECRET);
  },
  "read the service's environment and memory": async (worker, { decoy }) => {
    const outcomes = [
      await ask(worker, 'read environment', { pid: decoy.pid }),
      await ask(worker, 'read memory', { pid: decoy.pid }),
    ];
    return outcomes.some((outcome) => outcome.startsWith('done'));
  },
  'read the TLS key': (worker) =>
    anywhere('tls.key', async (path) => {
      return (await ask(worker, 'read', { path })).includes(SECRET);
    }),
  'truncate, rename or delete originals and renderings': async (worker) => {
    let isHarmed = false;
    for (const file of ['originals/a', 'results/b']) {
      for (const attack of ['truncate', 'rename', 'remove']) {
        isHarmed ||= await anywhere(file, async (path) => {
          await ask(worker, attack, { path });
          const isWhole = existsSync(path) && readFileSync(path, 'utf8') === SECRET;
          rmSync(`${path}.taken`, { force: true });
          writeFileSync(path, SECRET);
          return !isWhole;
        });
      }
    }
    return isHarmed;
  },
  'create files': async (worker) => {
    const places = [
      '/',
      '/tmp',
      '/dev/shm',
      '/proc',
      ...folders,
      fileURLToPath(new URL('.', import.meta.url)),
    ];
    let isCreated = false;
    for (const [attack, name] of [
      ['create', 'made'],
      ['create folder', 'made-folder'],
    ]) {
      for (const place of places) {
        const outcome = await ask(worker, attack, { path: join(place, `${name}-${process.pid}`) });
        isCreated ||= outcome.startsWith('done');
        rmSync(join(place, `${name}-${process.pid}`), { recursive: true, force: true });
      }
    }
    return isCreated;
  },
  'read files of the system': async (worker) =>
    (await ask(worker, 'read', { path: '/etc/passwd' })).startsWith('done'),
  'connect to a socket in a folder': (worker) =>
    anywhere('socket', async (path) => {
      return await reaches(worker, { path });
    }),
  'connect to an abstract socket': (worker, { abstract }) => reaches(worker, { path: abstract }),
  'use the network': (worker, { port }) => reaches(worker, { host: '127.0.0.1', port }),
  'start programs': async (worker) => (await ask(worker, 'start a program')) === 'done 0 42',
  'be the last to be killed when memory runs out': async (worker) => {
    await ask(worker, 'write to', { path: '/proc/self/oom_score_adj', text: '0' });
    return readFileSync(`/proc/${worker.processId}/oom_score_adj`, 'utf8') !== '1000\n';
  },
  'take precedence of the service': async (worker) => {
    await ask(worker, 'be first');
    return getPriority(worker.processId) < 0;
  },
  // Whatever it does to what would end it.
  'go on beyond the deadline': async (_, { found }) => {
    const own = createStarter();
    const worker = await startWorker(found, own);
    const { processId } = worker;
    await ask(worker, 'kill', { pid: latestChild() });
    const original = Buffer.from(JSON.stringify({ attack: 'hang' }));
    await worker.run({ original, job }, { timeoutMs: 100, signal: staying }).catch(() => undefined);
    const hasGoneOn = !(await soon(() => !isAlive(processId)));
    if (hasGoneOn) process.kill(processId, 'SIGKILL');
    own.stop();
    return hasGoneOn;
  },
  'outlive the service': async (_, { found }) => {
    const program = fileURLToPath(import.meta.url);
    const service = spawn(process.execPath, [program, 'abandon', found.name], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
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
  for (const folder of folders) if (await isPossibleAt(join(folder, file))) return true;
  return false;
}

/** It may be told of a connection before we are. */
async function reaches(worker, target) {
  return (await ask(worker, 'connect', { target })).startsWith('done');
}

async function listen(target) {
  const server = createServer((socket) => socket.on('error', () => undefined).destroy());
  server.listen(target);
  await once(server, 'listening');
  return server;
}

async function tryAll(found) {
  const abstract = `\0darkroom-${process.pid}`;
  for (const folder of folders) {
    for (const name of ['originals', 'results']) mkdirSync(join(folder, name), { recursive: true });
    for (const name of ['originals/a', 'results/b']) writeFileSync(join(folder, name), SECRET);
    writeFileSync(join(folder, 'tls.key'), SECRET, { mode: 0o600 });
  }
  const servers = [];
  for (const folder of folders) servers.push(await listen(join(folder, 'socket')));
  servers.push(await listen(abstract));
  const server = await listen({ host: '127.0.0.1', port: 0 });
  servers.push(server);
  const { port } = server.address();
  const decoy = await startDecoy();
  const [worker, sibling] = [await startWorker(found), await startWorker(found)];
  const confinement = readConfinement(found, [], { light: worker.processId, heavy: undefined });
  const harm = {};
  for (const [name, attack] of Object.entries(attacks)) {
    harm[name] = await attack(worker, { decoy, sibling, abstract, port, found });
  }
  for (const each of [worker, sibling]) each.kill('the end');
  decoy.kill('SIGKILL');
  // Its end removes the socket, which the next sandbox has under the same name.
  for (const each of servers) await new Promise((resolve) => each.close(resolve));
  return {
    sandbox: found.name,
    confinement,
    text: describeConfinement(confinement),
    isWhole: listDangers(confinement).length === 0,
    harm,
  };
}

const report = new Map();
for await (const found of starter.listSandboxes([])) {
  const { name } = found;
  const trial = await startWorker(found).catch(() => undefined);
  if (trial === undefined) continue;
  trial.kill('the end');
  if (mode === 'all') report.set(name, await tryAll(found));
  if (mode === 'abandon' && name === folders[0]) {
    const worker = await startWorker(found);
    const { processId } = worker;
    await ask(worker, 'stop', { pid: latestChild() }); // what would end it with the service
    process.stdout.write(`${processId} ${latestChild()}`);
    await sleep(60_000);
  }
}
process.stdout.write(JSON.stringify([...report.values()]));
process.exit(0);
