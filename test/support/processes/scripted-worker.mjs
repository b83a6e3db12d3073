/** A worker that runs the command in the original's text. Plain JavaScript, because it is bundled without compiling. */
import * as childProcess from 'node:child_process';
import * as fs from 'node:fs';
import * as net from 'node:net';
import * as os from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { PacketReader } from '../../../dist/workers/packets.js';
import { formatMessage } from '../../../dist/workers/protocol.js';

/** Arguments of an attacker's functions. */
const modules = { childProcess, fs, net, os };
const { readdirSync, readFileSync, readlinkSync } = fs;

const niceness = Number(process.argv[2]);
if (os.getPriority() < niceness) os.setPriority(niceness);
const channel = new net.Socket({ fd: 3 });
const packets = new PacketReader({ maxHeaderBytes: Infinity, maxBodyBytes: () => Infinity });
const send = (message) => {
  for (const piece of formatMessage(message)) channel.write(piece);
};
const reply = (text, rssBytes = 1) =>
  send({ kind: 'rendered', body: Buffer.from(String(text)), rssBytes });
const fail = (code, detail) => send({ kind: 'failed', code, detail, rssBytes: 1 });

let respondsEarly = false;

const commands = {
  // Blocks the event loop: only SIGKILL ends it.
  hang: () => {
    for (;;);
  },
  // Takes time, but no CPU.
  rest: (ms) => setTimeout(() => reply(`${whoAmI()} rested`), Number(ms)),
  // Reports that it works, then hangs; the first jobs of the worker return at once.
  'stand-still': (firstJobs) => {
    if (jobs <= Number(firstJobs)) return reply(`${whoAmI()} continued`);
    process.stderr.write('stands still\n', commands.hang);
  },
  crash: () => setImmediate(() => process.abort()),
  'crash-after': (ms) => setTimeout(() => process.abort(), Number(ms)),
  exit: () => setImmediate(() => process.exit(3)),
  // Responds to the next job after its first bytes, and never receives the rest.
  'respond-early': () => {
    respondsEarly = true;
    reply(whoAmI());
  },
  corrupt: () => fail('UNPROCESSABLE_MEDIA', 'bad bytes'),
  'too-large': () => fail('MEDIA_TOO_LARGE', 'out of memory'),
  // Like `too-large`, except for the first job of the worker.
  'too-large-later': () => (jobs > 1 ? fail('MEDIA_TOO_LARGE', 'out of memory') : reply(whoAmI())),
  bug: () => fail('INTERNAL_ERROR', 'a bug'),
  environment: () => reply(JSON.stringify(process.env)),
  descriptors: () => reply(JSON.stringify(readdirSync('/proc/self/fd').map(targetOf))),
  // Allocates until the system refuses; replies with the MiB.
  allocate: (limit) => {
    const held = [];
    try {
      while (held.length < Number(limit)) held.push(Buffer.alloc(1024 * 1024, 1));
    } catch (error) {
      return reply(`${held.length} ${error.message}`);
    }
    reply(`${held.length} unbounded`);
  },
  // Allocates on V8's heap without end.
  devour: () => {
    const held = [];
    for (;;) held.push(Array(10_000).fill(held.length));
  },
  'heap-bound': () => reply(getHeapStatistics().heap_size_limit),
  loaded: (name) => reply(readFileSync('/proc/self/maps', 'utf8').includes(name)),
  'write-errors': (count) => {
    for (let line = 1; line <= Number(count); line += 1)
      process.stderr.write(`complaint ${line}\n`);
    reply('written');
  },
  // Repeats a read, and replies with the kinds of all replies.
  'read-again': async (times) => {
    const kinds = [];
    for (let round = 0; round < Number(times); round += 1)
      kinds.push((await sendRequest({ kind: 'read', start: 0, end: 1 })).kind);
    reply(kinds.join(' '));
  },
  // Decodes the frames of a stream with a command to the decoder, one after another.
  decode: async (words) => {
    const [times, ...text] = words.split(' ');
    const replies = [];
    for (let round = 0; round < Number(times); round += 1) {
      const reply = await sendRequest({ kind: 'decode', request: requestOf(text.join(' ')) });
      replies.push(reply.kind === 'end' ? reply.bytes.toString() : reply.code);
    }
    reply(replies.join('|'));
  },
  // Decodes a frame; replies with a character for each byte.
  'decode-stream': async (json) => {
    const { stream, ...request } = JSON.parse(json);
    const { kind, bytes } = await sendRequest({
      kind: 'decode',
      request: { ...request, stream: Buffer.from(stream, 'base64') },
    });
    if (kind === 'end') reply(bytes.toString('latin1'));
    else fail('UNPROCESSABLE_MEDIA', 'no frame');
  },
  raw: (hex) => channel.write(Buffer.from(hex, 'hex')),
  // Runs an attacker's JavaScript function; replies with the outcome.
  call: async (json) => {
    const { code, about } = JSON.parse(json);
    try {
      const attack = new Function(`return ${code}`)();
      reply(`done ${(await attack(about, modules)) ?? ''}`);
    } catch (error) {
      reply(`failed ${error.code ?? error.message}`);
    }
  },
  grow: (rssBytes) => reply(whoAmI(), Number(rssBytes)),
  // Crashes, but leaves a child that keeps the channel open.
  orphan: () => {
    const options = { stdio: ['ignore', 'ignore', 'inherit', channel] };
    // A full sandbox permits no child.
    childProcess.spawn('sleep', ['20'], options).on('error', () => undefined);
    setTimeout(() => process.abort(), 200);
  },
};

function requestOf(text) {
  const size = { widthPx: 16, heightPx: 16 };
  return { codec: 'h264', stream: Buffer.from(text), size };
}

channel.on('data', (chunk) => {
  if (respondsEarly) {
    channel.pause();
    setInterval(() => undefined, 1_000); // a paused channel does not keep the process alive
    send({ kind: 'begun' });
    return reply('early');
  }
  for (const packet of packets.read(chunk)) {
    if (onReply) onReply(packet);
    else void begin(packet);
  }
});
channel.on('error', () => undefined);
channel.on('close', () => process.exit(0));
send({ kind: 'ready' });
process.on('SIGTERM', () => undefined);

let jobs = 0;
/** Receives the packets of a reply. */
let onReply;
/** Size of the original, if it is read by ranges. */
let sizeBytes;

async function begin({ header, body }) {
  sizeBytes = header.sizeBytes;
  if (sizeBytes === undefined) return obey(body.toString());
  send({ kind: 'begun' });
  const reply = await sendRequest({ kind: 'read', start: 0, end: sizeBytes });
  if (reply.kind === 'end') obey(reply.bytes.toString());
  else fail('UNPROCESSABLE_MEDIA', 'nothing to read');
}

/** Sends a request; resolves with its reply. */
function sendRequest(request) {
  return new Promise((resolve) => {
    const pieces = [];
    onReply = ({ header, body }) => {
      pieces.push(body);
      if (header.kind === 'bytes') return;
      onReply = undefined;
      resolve({ ...header, bytes: Buffer.concat(pieces) });
    };
    send(request);
  });
}

function obey(text) {
  jobs += 1;
  const [word, ...rest] = text.split(' ');
  if (text === 'not begun') return reply('too early');
  if (text === 'die before it begins') return process.abort();
  if (sizeBytes === undefined) send({ kind: 'begun' });
  const command = Object.hasOwn(commands, word) ? commands[word] : undefined;
  return command === undefined ? reply(`${whoAmI()} ${text}`) : command(rest.join(' '));
}

/** Returns the inode of the channel: inside a PID namespace, the worker does not know its outer process id. */
function whoAmI() {
  if (process.platform !== 'linux') return process.pid;
  return `#${readlinkSync('/proc/self/fd/3').replace(/\D/g, '')}`;
}

function targetOf(descriptor) {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return 'gone'; // the descriptor that read the directory
  }
}
