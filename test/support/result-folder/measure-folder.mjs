// Opens a folder of renderings, reads one of them many times, sweeps, and writes what that took as JSON.
import { readFileSync } from 'node:fs';

const [storeModule, folder, reads] = process.argv.slice(2);
const { openResultFolder } = await import(storeModule);
const ignore = () => undefined;
const log = { info: ignore, warn: console.error, error: console.error };
const startedMs = performance.now();
const store = await openResultFolder({ folder, maxBytes: 1e12, log });
const openedMs = performance.now() - startedMs;
const originKey = 'avatars/1/ab12';
const address = { originKey, key: `${originKey}?width=64`, originalEtag: 'e1', release: 'r1' };
const { signal } = new AbortController();
const before = process.cpuUsage();
for (let turn = 0; turn < Number(reads); turn += 1) {
  if ((await store.read(address, signal, ignore)) === undefined)
    throw new Error('It is not found.');
}
const { user, system } = process.cpuUsage(before);
const readsMs = (user + system) / 1_000;
await store.sweep();
const [, peakKib] = /VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
const peakBytes = Number(peakKib) * 1024;
console.log(JSON.stringify({ openedMs, readsMs, peakBytes, usage: store.usage() }));
