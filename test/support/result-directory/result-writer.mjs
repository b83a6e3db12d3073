// Writes renderings until it is killed. Arguments: the compiled store module, its directory, limit, seed and addresses.
import { setTimeout as wait } from 'node:timers/promises';

const [storeModule, directory, maxBytes, seed, addressesJson] = process.argv.slice(2);
const addresses = JSON.parse(addressesJson);
const { openResultDirectory } = await import(storeModule);
const log = { info: () => undefined, warn: () => undefined, error: console.error };
const store = await openResultDirectory(directory, Number(maxBytes), log);
void store.sweep();
console.log('writing');

const writeAll = async (first) => {
  for (let number = first; ; number += 4) {
    // Each body has a different length: its number, then one repeated byte.
    const body = Buffer.alloc(8 + ((number * 7_919) % 300_000), number & 0xff);
    body.writeUInt32BE(number, 0);
    // The store rejects writes until it has been swept.
    const write = store.write(addresses[number % addresses.length], {
      body,
      mimeType: 'image/webp',
    });
    await write.catch(() => wait(1));
  }
};
await Promise.all([0, 1, 2, 3].map((lane) => writeAll(lane + 1_000 * Number(seed))));
