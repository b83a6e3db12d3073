// Writes renderings into a store without end, until it is killed: the store that was built, and its folder. Says so
// when the folder is its own.
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import { crashAddressOf, crashBodyOf } from './crash-results.mjs';

const [storeModule, folder, maxBytes] = process.argv.slice(2);
const { createDiskCache } = await import(storeModule);
const log = { info: () => undefined, warn: () => undefined, error: console.error };
const store = await createDiskCache({ folder, maxBytes: Number(maxBytes), log });
console.log(store.shortcoming() === undefined ? 'first' : 'waiting');
while (store.usage() === undefined) await wait(1);
console.log('writing');

const writeAll = async (first) => {
  for (let turn = first; ; turn += 4) {
    const body = crashBodyOf(turn);
    await store.write(crashAddressOf(turn), { body, mimeType: 'image/webp' });
    await nextTurn(); // a write that finds no room is over at once
  }
};
await Promise.all([0, 1, 2, 3].map(writeAll));
