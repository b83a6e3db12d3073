// The page of a chat: pictures in the sizes of their elements, and an upload with its preview.
import { MediaUrls, nearestSize } from '@darkroom-media/darkroom/urls';

const media = new MediaUrls({ cdnUrl: document.documentElement.dataset.cdnUrl ?? '' });
const find = <Type extends HTMLElement>(id: string) => document.getElementById(id) as Type;
const image = find<HTMLImageElement>;

image('avatar').src = media.avatar('1', 'ab12', { size: nearestSize(40, devicePixelRatio) });
image('emoji').srcset = media.srcset(22, (size) => media.emoji('7', { size }));

async function callApi(method: string, parameters: Record<string, string>) {
  const response = await fetch(`/attachments?${new URLSearchParams(parameters)}`, { method });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

/** Uploads a file, and returns its signed URL. */
async function upload(file: File): Promise<string> {
  const { name: filename, type } = file;
  const { id, uploadUrl } = await callApi('POST', { filename, type });
  const response = await fetch(uploadUrl, { method: 'PUT', body: file });
  if (!response.ok) throw new Error(await response.text());
  return (await callApi('GET', { id, filename })).url;
}

const input = find<HTMLInputElement>('file');
input.onchange = async () => {
  const [file] = input.files ?? [];
  if (file === undefined) return;
  try {
    const href = await upload(file);
    image('preview').src = media.transform(href, { width: 320, format: 'webp', quality: 'high' });
    const link = Object.assign(document.createElement('a'), { href, textContent: file.name });
    find('status').replaceChildren('Sent ', link);
  } catch (error) {
    find('status').textContent = String(error);
  }
};
