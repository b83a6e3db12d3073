// Writes renderings into a store without end, until it is killed: the store that was built, and its folder.
import { setTimeout as wait } from 'node:timers/promises';
import { crashAddressOf, crashBodyOf } from './crash-results.mjs';

const [storeModule, folder, maxBytes, seed] = process.argv.slice(2);
const { openResultFolder } = await import(storeModule);
const log = { info: () => undefined, warn: () => undefined, error: console.error };
const store = await openResultFolder({ folder, maxBytes: Number(maxBytes), log });
void store.sweep();
console.log('writing');

const writeAll = async (first) => {
  for (let turn = first; ; turn += 4) {
    const body = crashBodyOf(turn);
    // A folder that has to be swept rejects writes meanwhile.
    const write = store.write(crashAddressOf(turn), { body, mimeType: 'image/webp' });
    await write.catch(() => wait(1));
  }
};
await Promise.all([0, 1, 2, 3].map((lane) => writeAll(lane + 1_000 * Number(seed))));
