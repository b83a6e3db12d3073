/**
 * A service whose video decoder hangs, until it is killed. Plain JavaScript, since it is a process of its own.
 *
 *   node decode-forever.mjs DECODER PATH
 */
import { VideoDecoder } from '../../../dist/workers/video/video-decoder.js';
import { WorkerStarter } from '../../../dist/workers/worker-starter.js';

const [program, path] = process.argv.slice(2);
const environment = { PATH: path };
const file = new URL('../../../dist/workers/starter/main.js', import.meta.url);
const starter = new WorkerStarter({ starterFile: file.pathname, environment });
const settings = { program, mayBeWeaker: true, timeoutMs: 60_000 };
const decoder = new VideoDecoder({ ...settings, starter, environment });
decoder.find();
await decoder.support;
const size = { widthPx: 1, heightPx: 1 };
const order = { codec: 'h264', stream: Buffer.from('hang'), size };
for await (const _ of decoder.decode(order, new AbortController().signal));
