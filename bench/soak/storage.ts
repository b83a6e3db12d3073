import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type DiskFault, mountFaultyDisk } from '../../test/support/processes/faulty-disk.ts';
import { FaultProxy, type Fault as ProxyFault } from '../../test/support/s3/fault-proxy.ts';
import { listFiles } from '../harness/fixtures.ts';
import { bucketSettings, startOwn } from '../harness/service.ts';
import { type Original, writeOriginals } from './originals.ts';
import type { Fault, Troubles } from './troubles.ts';

/** Time for which a fault affects the service after its end: until a hanging call times out, or until a retry. */
const HANGING_LINGER_MS = 14_000;
const LINGER_MS = 2_000;

/** The store's disk is larger than the store's limit, so that it is full only when the soak fills it. */
const STORE_BYTES = 64 * 2 ** 20;
const DISK_BYTES = 1.5 * STORE_BYTES;
const BALLAST_PIECE_BYTES = 256 * 1024;

/** Storage of originals: an S3 API, or a directory. */
export type Place = 'bucket' | 'disk';

const diskFaults: readonly (readonly [name: string, fault: DiskFault, lingerMs: number])[] = [
  ['slow', 'delay 0.2', HANGING_LINGER_MS],
  ['hanging', 'hang', HANGING_LINGER_MS],
  ['failing', 'fail', LINGER_MS],
];

const createError = (status: string, code: string): ProxyFault => {
  const body = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code></Error>`;
  const head = `HTTP/1.1 ${status}\r\nContent-Type: application/xml\r\nContent-Length: ${body.length}`;
  return { kind: 'response', bytes: `${head}\r\n\r\n${body}` };
};

const bucketFaults: readonly (readonly [name: string, fault: ProxyFault, lingerMs: number])[] = [
  ['no responses', { kind: 'response', bytes: '' }, HANGING_LINGER_MS],
  ['stalled bodies', { kind: 'stall', afterBytes: 0 }, HANGING_LINGER_MS],
  ['reset connections', { kind: 'reset', afterBytes: 0 }, LINGER_MS],
  ['truncated bodies', { kind: 'cut', afterBytes: 0 }, LINGER_MS],
  ['status 500', createError('500 Internal Server Error', 'InternalError'), LINGER_MS],
  ['status 503 SlowDown', createError('503 Slow Down', 'SlowDown'), LINGER_MS],
  ['slow responses', { kind: 'trickle', bytes: 2 ** 16 }, LINGER_MS],
];

/** Opens originals and a store of renderings in the empty directory `base`; injects every fault possible here. */
export async function openStorage(base: string, place: Place, originals: readonly Original[]) {
  const within = (...names: string[]): string => join(base, ...names);
  for (const name of ['disk/originals', 'disk/renderings', 'mounted', 'tmp']) {
    mkdirSync(within(name), { recursive: true });
  }
  const isBounded = mountMemory(within('disk/renderings'));
  const store = within('disk/renderings/store');
  mkdirSync(store);
  writeOriginals(within('disk/originals'), originals);
  const fuse = await mountFaultyDisk(within('mounted'), within('disk'));
  const visibleRoot = within(fuse === undefined ? 'disk' : 'mounted');
  const createDiskFaults = (directory: 'originals' | 'renderings'): Fault[] =>
    (fuse === undefined ? [] : diskFaults).map(([name, fault, lingerMs]) => ({
      ...{ name: `${name} disk of ${directory}`, lingerMs },
      // Files cannot be removed from a failing disk; the store's sweep removes them after 15 minutes.
      excuses: directory === 'originals' ? 'originals' : fault === 'fail' ? 'files' : 'nothing',
      begin: () => fuse?.setFault(directory, fault),
      end: () => fuse?.setFault(directory, 'none'),
    }));
  const ballast = within('disk/renderings/ballast');
  const full: Fault = {
    name: 'full disk of renderings',
    excuses: 'nothing',
    lingerMs: LINGER_MS,
    begin: () => fill(ballast),
    end: () => rmSync(ballast),
  };
  const bucket = place === 'bucket' ? await openBucket(within('disk/originals')) : undefined;
  return {
    settings: {
      ...(bucket?.settings ?? {
        STORAGE: 'filesystem',
        STORAGE_DIR: join(visibleRoot, 'originals'),
      }),
      RESULT_STORE: 'filesystem',
      RESULT_STORE_DIR: join(visibleRoot, 'renderings/store'),
      RESULT_STORE_MAX_BYTES: String(STORE_BYTES),
      TMPDIR: within('tmp'),
    },
    faults: [
      ...(bucket?.faults ?? createDiskFaults('originals')),
      ...createDiskFaults('renderings'),
      ...(isBounded ? [full] : []),
    ],
    /** Reasons why some faults cannot be injected on this machine. */
    missing: [
      ...(isBounded ? [] : ['no disk is ever full: mounting a tmpfs needs root']),
      ...(fuse === undefined
        ? ["no disk is slow or fails: that needs /dev/fuse, Debian's fuse3 and python3-fusepy"]
        : []),
    ],
    /** Counts renderings that were stored since a time, in milliseconds since 1970. */
    countStoredSince: (sinceMs: number): number =>
      listFiles(join(store, 'results')).filter((file) => statSync(file).mtimeMs >= sinceMs).length,
    /** Lists files that are neither originals nor renderings, except files that a fault excuses. */
    listTemporary: (troubles: Troubles) =>
      [...listFiles(join(store, 'incoming')), ...listFiles(within('tmp'))].filter((file) => {
        const { mtimeMs } = statSync(file);
        return !troubles.isExcused('files', mtimeMs, mtimeMs + LINGER_MS);
      }),
    close: async () => {
      await bucket?.close();
      await fuse?.close();
      if (isBounded) execFileSync('umount', ['--lazy', within('disk/renderings')]);
    },
  };
}

/** Opens an S3 API on a directory, behind a proxy that injects faults. */
async function openBucket(directory: string) {
  const server = await startOwn('directory', directory);
  const proxy = new FaultProxy(Number(new URL(server.origin).port));
  await proxy.listen();
  const faults = bucketFaults.map(
    ([name, fault, lingerMs]): Fault => ({
      ...{ name, lingerMs, excuses: fault.kind === 'trickle' ? 'nothing' : 'originals' },
      begin: () => proxy.setFault(fault),
      end: () => proxy.setFault(),
    }),
  );
  const refused: Fault = {
    name: 'connections refused',
    excuses: 'originals',
    lingerMs: LINGER_MS,
    begin: () => proxy.refuse(),
    end: () => proxy.listen(),
  };
  return {
    settings: {
      ...bucketSettings(proxy.endpoint),
      // The SDK's warning to use a newer Node is not a line of the service's log.
      AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
    },
    faults: [...faults, refused],
    close: async () => {
      await proxy.refuse();
      await server.stop();
    },
  };
}

/** Mounts a disk in memory; `false` without root. */
function mountMemory(directory: string): boolean {
  try {
    const options = ['-t', 'tmpfs', '-o', `size=${DISK_BYTES}`, 'tmpfs', directory];
    execFileSync('mount', options, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

function fill(file: string): void {
  const piece = Buffer.alloc(BALLAST_PIECE_BYTES);
  try {
    for (let bytes = 0; bytes <= DISK_BYTES; bytes += piece.length) appendFileSync(file, piece);
  } catch {
    // Full, except for a few pages.
  }
}
