/**
 * A service whose video decoder hangs until it is killed. Plain JavaScript, because it is a separate process.
 *
 *   node decode-forever.mjs DECODER PATH
 */
import { ForkServer } from '../../../dist/workers/fork-server/client.js';
import { VideoDecoder } from '../../../dist/workers/video/video-decoder.js';

const [program, path] = process.argv.slice(2);
const environment = { PATH: path };
const file = new URL('../../../dist/workers/fork-server/main.js', import.meta.url);
const forkServer = new ForkServer(file.pathname, environment);
const settings = { program, mayBeWeaker: true, timeoutMs: 60_000 };
const decoder = new VideoDecoder(settings, forkServer, environment);
decoder.find();
await decoder.support;
const size = { widthPx: 1, heightPx: 1 };
const request = { codec: 'h264', stream: Buffer.from('hang'), size };
for await (const _ of decoder.decode(request, new AbortController().signal));
