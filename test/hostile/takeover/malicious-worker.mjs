/**
 * A worker that is in an attacker's hands: it does what a job's text says, and replies with what came of it. Plain
 * JavaScript, since it is started as it is.
 */
import { spawnSync } from 'node:child_process';
import {
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { connect, Socket } from 'node:net';
import { setPriority } from 'node:os';
import { FrameReader } from '../../../dist/workers/frames.js';
import { formatMessage } from '../../../dist/workers/protocol.js';

const channel = new Socket({ fd: 3 });
const frames = new FrameReader({ maxHeaderBytes: Infinity, maxBodyBytes: () => Infinity });

const attacks = {
  stop: ({ pid }) => process.kill(pid, 'SIGSTOP'),
  kill: ({ pid }) => process.kill(pid, 'SIGKILL'),
  // Whatever it sees, if it is itself and its like.
  'kill all': () => process.kill(-1, 'SIGKILL'),
  'read environment': ({ pid }) => readFileSync(`/proc/${pid}/environ`, 'utf8'),
  'read memory': ({ pid }) => {
    const [range = ''] =
      /^\S+(?= rw-p .*\[heap\]$)/m.exec(readFileSync(`/proc/${pid}/maps`, 'utf8')) ?? [];
    const bytes = Buffer.alloc(16);
    readSync(openSync(`/proc/${pid}/mem`), bytes, 0, 16, BigInt(`0x${range.split('-')[0]}`));
    return bytes.toString('hex');
  },
  read: ({ path }) => readFileSync(path, 'utf8'),
  list: ({ path }) => readdirSync(path).join(' '),
  truncate: ({ path }) => truncateSync(path, 0),
  rename: ({ path }) => renameSync(path, `${path}.taken`),
  remove: ({ path }) => rmSync(path),
  create: ({ path }) => writeFileSync(path, ''),
  'create folder': ({ path }) => mkdirSync(path),
  'write to': ({ path, text }) => writeFileSync(path, text),
  'be first': () => setPriority(0, -5),
  // By Node, which it has in any case.
  'start a program': () => {
    const { error, status, stdout } = spawnSync(process.execPath, ['-p', '6 * 7'], {
      encoding: 'utf8',
    });
    if (error) throw error;
    return `${status} ${stdout.trim()}`;
  },
  connect: ({ target }) =>
    new Promise((resolve, reject) => {
      const socket = connect(target, () => resolve('connected'));
      socket.on('error', reject);
    }),
  hang: () => {
    for (;;);
  },
};

channel.on('data', (chunk) => {
  for (const { body } of frames.read(chunk)) {
    if (isGreeted) void obey(JSON.parse(body.toString()));
    else send({ kind: 'ready' });
    isGreeted = true;
  }
});
channel.on('error', () => undefined);
// It does not end with the service by itself.
channel.on('close', () => setInterval(() => undefined, 1_000));
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => undefined);
let isGreeted = false;

async function obey({ attack, ...about }) {
  send({ kind: 'begun' });
  let outcome;
  try {
    outcome = `done ${(await attacks[attack](about)) ?? ''}`;
  } catch (error) {
    outcome = `failed ${error.code ?? error.message}`;
  }
  send({ kind: 'rendered', body: Buffer.from(outcome), rssBytes: 1 });
}

function send(message) {
  for (const piece of formatMessage(message)) channel.write(piece);
}
