// The API of a chat: it permits uploads, and signs the URLs of attachments. A real one checks the user first.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createUploadCapability, signAttachmentUrl } from '@darkroom-media/darkroom/signing';

const { PORT = '8080', CDN_URL: cdnUrl = 'http://127.0.0.1:3000' } = process.env;
const { ATTACHMENT_SIGNING_KEYS = '', RELAY_SIGNING_KEYS = '' } = process.env;
const channelId = '1475555555555555556';
const read = (name) => readFile(new URL(name, import.meta.url), 'utf8');

const routes = {
  'GET /': async () => ['text/html', (await read('page.html')).replace('{cdn_url}', cdnUrl)],
  'GET /page.js': async () => ['text/javascript', await read('dist/page.js')],
  'POST /attachments': async ({ filename, type }) => {
    const id = String(BigInt(Date.now() - 1_420_070_400_000) << 22n);
    const { url: uploadUrl } = await createUploadCapability({
      key: `attachments/${channelId}/${id}/${filename}`,
      expiresAt: new Date(Math.ceil(Date.now() / 1000 + 600) * 1000),
      contentType: type || undefined,
      maxBytes: 10_000_000,
      signingKeys: RELAY_SIGNING_KEYS,
      cdnUrl,
    });
    return ['application/json', JSON.stringify({ id, uploadUrl })];
  },
  'GET /attachments': async ({ id, filename }) => {
    const signingKeys = ATTACHMENT_SIGNING_KEYS;
    const attachment = { channelId, attachmentId: id, filename, signingKeys, cdnUrl };
    return ['application/json', JSON.stringify({ url: await signAttachmentUrl(attachment) })];
  },
};

const server = createServer(async ({ method, url = '' }, response) => {
  const { pathname, searchParams } = new URL(url, 'http://localhost');
  try {
    const route = routes[`${method} ${pathname}`];
    const [type, body] = await route(Object.fromEntries(searchParams));
    response.setHeader('Content-Type', type).end(body);
  } catch (error) {
    response.writeHead(400).end(error.message);
  }
}).listen(Number(PORT), '127.0.0.1', () => {
  console.log(`Open http://127.0.0.1:${server.address().port}/`);
});
