/**
 * A worker that does what the original's text says, to see how the pool takes it. Plain JavaScript,
 * since it is started as it is.
 */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { Socket } from 'node:net';
import { getPriority, setPriority } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { FrameReader, formatFrame } from '../../../dist/workers/frames.js';
import { formatMessage } from '../../../dist/workers/protocol.js';

if (getPriority() < Number(process.argv[2])) setPriority(Number(process.argv[2]));
const channel = new Socket({ fd: 3 });
const frames = new FrameReader({ maxHeaderBytes: Infinity, maxBodyBytes: () => Infinity });
const send = (message) => write(formatMessage(message));
const reply = (text, rssBytes = 1) =>
  send({ kind: 'rendered', body: Buffer.from(String(text)), rssBytes });
const fail = (code, detail) => send({ kind: 'failed', code, detail, rssBytes: 1 });

const commands = {
  // Not even its event loop turns: only SIGKILL ends it.
  hang: () => {
    for (;;);
  },
  // Takes a while, and no CPU time.
  rest: (ms) => setTimeout(() => reply(`${process.pid} rested`), Number(ms)),
  // Says that it is at work, and then the same; where it is among the first jobs of its worker, it is done at once.
  'stand-still': (firstJobs) => {
    if (jobs <= Number(firstJobs)) return reply(`${whoAmI()} went on`);
    process.stderr.write('stands still\n', commands.hang);
  },
  crash: () => setImmediate(() => process.abort()),
  exit: () => setImmediate(() => process.exit(3)),
  corrupt: () => fail('UNPROCESSABLE_MEDIA', 'bad bytes'),
  bug: () => fail('INTERNAL_ERROR', 'a bug'),
  environment: () => reply(JSON.stringify(process.env)),
  descriptors: () => reply(JSON.stringify(readdirSync('/proc/self/fd').map(describe))),
  // The memory that it gets until the system refuses, in MiB.
  allocate: (limit) => {
    const held = [];
    try {
      while (held.length < Number(limit)) held.push(Buffer.alloc(1024 * 1024, 1));
    } catch (error) {
      return reply(`${held.length} ${error.message}`);
    }
    reply(`${held.length} unbounded`);
  },
  // The same without an end: by what V8 cannot refuse to itself.
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
  // The response, so many bytes at a time.
  'in-pieces': async (bytes) => {
    const body = Buffer.from('in pieces');
    const message = Buffer.concat(formatMessage({ kind: 'rendered', body, rssBytes: 1 }));
    for (let at = 0; at < message.length; at += Number(bytes)) {
      channel.write(message.subarray(at, at + Number(bytes)));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  },
  // What comes of asking again, so many times, whatever the replies are.
  'read-again': async (times) => {
    const kinds = [];
    for (let round = 0; round < Number(times); round += 1)
      kinds.push((await ask({ kind: 'read', start: 0, end: 1 })).kind);
    reply(kinds.join(' '));
  },
  // So many frames, one after another, of a stream that says what the decoder is to do.
  decode: async (words) => {
    const [times, ...text] = words.split(' ');
    const replies = [];
    for (let round = 0; round < Number(times); round += 1) {
      const reply = await ask({ kind: 'decode', order: orderOf(text.join(' ')) });
      replies.push(reply.kind === 'end' ? reply.bytes.toString() : reply.code);
    }
    reply(replies.join('|'));
  },
  // The frame of a stream, a character for each byte.
  'decode-stream': async (json) => {
    const { stream, ...order } = JSON.parse(json);
    const { kind, bytes } = await ask({
      kind: 'decode',
      order: { ...order, stream: Buffer.from(stream, 'base64') },
    });
    if (kind === 'end') reply(bytes.toString('latin1'));
    else fail('UNPROCESSABLE_MEDIA', 'no frame');
  },
  facts: (json) => write(formatFrame({ kind: 'inspected', facts: JSON.parse(json), rssBytes: 1 })),
  grow: (rssBytes) => reply(whoAmI(), Number(rssBytes)),
  // Dies, and leaves a child behind that holds its channel open.
  orphan: () => {
    const options = { stdio: ['ignore', 'ignore', 'inherit', channel] };
    // Confined whole, it may not start any.
    spawn('sleep', ['20'], options).on('error', () => undefined);
    setTimeout(() => process.abort(), 200);
  },
};

/** What it may say instead of a result, once an attacker has it. */
const lies = {
  'unknown kind': () => write(formatFrame({ kind: 'obey' })),
  'no object': () => write(formatFrame([null])),
  null: () => write([prefix(4, 0), Buffer.from('null')]),
  'no json': () => write([prefix(3, 0), Buffer.from('{"}')]),
  'unknown code': () =>
    write(formatFrame({ kind: 'failed', code: 'OVERLOADED', detail: '', rssBytes: 1 })),
  'inherited code': () =>
    write(formatFrame({ kind: 'failed', code: 'toString', detail: '', rssBytes: 1 })),
  'no detail': () =>
    write(formatFrame({ kind: 'failed', code: 'UNPROCESSABLE_MEDIA', rssBytes: 1 })),
  'body of a failure': () =>
    write(
      formatFrame(
        { kind: 'failed', code: 'UNPROCESSABLE_MEDIA', detail: '', rssBytes: 1 },
        Buffer.from('x'),
      ),
    ),
  'no body': () => write(formatFrame({ kind: 'rendered', rssBytes: 1 })),
  'body in the header': () => write(formatFrame({ kind: 'rendered', rssBytes: 1, body: [1, 2] })),
  'no size': () => write(formatFrame({ kind: 'rendered' }, Buffer.from('x'))),
  'ready again': () => send({ kind: 'ready' }),
  'begun again': () => send({ kind: 'begun' }),
  'huge header': () => write([prefix(16 * 1024 + 1, 0)]),
  'huge body': () => write([prefix(40, 2 ** 32 - 1)]),
  'read too far': () => send({ kind: 'read', start: 0, end: sizeBytes + 1 }),
  'read nothing': () => send({ kind: 'read', start: 1, end: 1 }),
  'read before the beginning': () => send({ kind: 'read', start: -1, end: 1 }),
  'read no number': () => send({ kind: 'read', start: '0', end: [1] }),
  'read twice at once': () => {
    for (const start of [0, 1]) send({ kind: 'read', start, end: start + 1 });
  },
  'respond while it reads': () => {
    send({ kind: 'read', start: 0, end: 1 });
    reply('too early');
  },
  'facts instead of a picture': () => send({ kind: 'inspected', facts, rssBytes: 1 }),
  'picture instead of facts': () => reply('a picture'),
  'unknown codec': () => sendOrder({ codec: 'mpeg2' }),
  'inherited codec': () => sendOrder({ codec: 'toString' }),
  'no frame size': () => sendOrder({ size: undefined }),
  'frame without a width': () => sendOrder({ size: { widthPx: 0, heightPx: 1 } }),
  'edge over the bound': () => sendOrder({ size: { widthPx: 16_385, heightPx: 1 } }),
  'pixels over the bound': () => sendOrder({ size: { widthPx: 16_384, heightPx: 2_177 } }),
  'no stream': () => sendOrder({ stream: Buffer.alloc(0) }),
  'stream over the bound': () => write([prefix(40, 9 * 1024 * 1024 + 1)]),
  decode: () => sendOrder({}),
  'body over the bound': () => write([prefix(40, 1024 * 1024 + 2_048 + 5 + 1)]),
};

const facts = {
  kind: 'audio',
  container: 'wav',
  codec: 'pcm',
  durationS: 1,
  hasAudio: true,
  fault: { code: 'UNSUPPORTED_MEDIA_TYPE', reason: 'sound' },
};

function orderOf(text) {
  const size = { widthPx: 16, heightPx: 16 };
  return { codec: 'h264', stream: Buffer.from(text), size };
}

function sendOrder(changes) {
  send({ kind: 'decode', order: { ...orderOf('x'), ...changes } });
}

channel.on('data', (chunk) => {
  for (const frame of frames.read(chunk)) {
    if (onReply) onReply(frame);
    else if (isGreeted) void begin(frame);
    else send({ kind: 'ready' });
    isGreeted = true;
  }
});
channel.on('error', () => undefined);
channel.on('close', () => process.exit(0));
process.on('SIGTERM', () => undefined);

let isGreeted = false;
let jobs = 0;
/** Takes the pieces of a reply. */
let onReply;
/** Of the original that it reads by ranges. */
let sizeBytes;

async function begin({ header, body }) {
  sizeBytes = header.sizeBytes;
  if (sizeBytes === undefined) return obey(body.toString());
  send({ kind: 'begun' });
  const reply = await ask({ kind: 'read', start: 0, end: sizeBytes });
  if (reply.kind === 'end') obey(reply.bytes.toString());
  else fail('UNPROCESSABLE_MEDIA', 'nothing to read');
}

/** Sends a request; resolves with its reply. */
function ask(request) {
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
  if (text === 'answer unasked') {
    send({ kind: 'begun' });
    reply('first');
    return reply('second');
  }
  if (text === 'not begun') return reply('too early');
  if (text === 'die before it begins') return process.kill(process.pid, 'SIGKILL');
  if (sizeBytes === undefined) send({ kind: 'begun' });
  if (word === 'lie') return lies[rest.join(' ')]();
  const command = Object.hasOwn(commands, word) ? commands[word] : undefined;
  return command === undefined ? reply(`${whoAmI()} ${text}`) : command(rest.join(' '));
}

/** In a PID namespace of its own it does not know its process id; its channel has one name inside and outside. */
function whoAmI() {
  if (process.platform !== 'linux') return process.pid;
  return `#${readlinkSync('/proc/self/fd/3').replace(/\D/g, '')}`;
}

function write(pieces) {
  for (const piece of pieces) channel.write(piece);
}

function prefix(headerBytes, bodyBytes) {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32BE(headerBytes, 0);
  bytes.writeUInt32BE(bodyBytes, 4);
  return bytes;
}

function describe(descriptor) {
  try {
    return `${descriptor} ${readlinkSync(`/proc/self/fd/${descriptor}`)}`;
  } catch {
    return `${descriptor} gone`; // the one that read the folder
  }
}
