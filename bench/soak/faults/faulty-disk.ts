import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type DiskFault, mountFaultyDisk } from '../../../test/support/processes/faulty-disk.ts';
import { listFiles, listOriginals } from '../originals.ts';
import { type FaultyOrigin, HANGING_SHADOW_MS, SHADOW_MS } from './faulty-origin.ts';
import type { WaveKind } from './waves.ts';

/** The disk of renderings holds more than they may take, so that it is full only where something else fills it. */
const STORE_BYTES = 64 * 2 ** 20;
const DISK_BYTES = 1.5 * STORE_BYTES;
const BALLAST_PIECE_BYTES = 256 * 1024;

/** A system call on a slow disk is late by a fifth of a second. */
const faults: Readonly<Record<string, DiskFault>> = {
  slow: 'delay 0.2',
  hanging: 'hang',
  failing: 'fail',
};

/** Folders of originals and renderings on disks that can be made to fail. */
export type FaultyDisks = Awaited<ReturnType<typeof mountFaultyDisks>>;

/** Mounts them, as far as this machine can. */
export async function mountFaultyDisks() {
  const base = await mkdtemp(join(tmpdir(), 'darkroom-soak-'));
  const within = (...names: string[]): string => join(base, ...names);
  for (const name of ['disk/originals', 'disk/renderings', 'mounted', 'tmp']) {
    mkdirSync(within(name), { recursive: true });
  }
  const isBounded = mountMemory(within('disk/renderings'));
  const store = within('disk/renderings/store');
  mkdirSync(store);
  const fuse = await mountFaultyDisk(within('mounted'), within('disk'));
  const seen = within(fuse === undefined ? 'disk' : 'mounted');
  const createKinds = (victim: WaveKind['victim']): WaveKind[] =>
    Object.entries(fuse === undefined ? {} : faults).map(([name, fault]) => ({
      name: `${name} disk of ${victim}`,
      victim,
      shadowMs: fault === 'fail' ? SHADOW_MS : HANGING_SHADOW_MS,
      begin: () => fuse?.tell(victim, fault),
      end: () => fuse?.tell(victim, 'none'),
    }));
  const ballast = within('disk/renderings/ballast');
  const full: WaveKind = {
    name: 'full disk of renderings',
    victim: 'renderings',
    shadowMs: SHADOW_MS,
    begin: () => fill(ballast),
    end: () => rmSync(ballast),
  };
  return {
    /** For the service: where renderings are stored, and what else is written. */
    settings: {
      RESULT_STORE: 'filesystem',
      RESULT_STORE_DIR: join(seen, 'renderings/store'),
      RESULT_STORE_MAX_BYTES: String(STORE_BYTES),
      TMPDIR: within('tmp'),
    },
    /** What may go wrong with the renderings. */
    kinds: [...createKinds('renderings'), ...(isBounded ? [full] : [])],
    /** What cannot go wrong on this machine, and why. */
    missing: [
      isBounded ? [] : 'no disk is ever full: to mount a tmpfs takes root',
      fuse
        ? []
        : "no disk is slow or fails: that takes /dev/fuse, and Debian's fuse3 and python3-fusepy",
    ].flat(),
    /** Puts all originals into the folder of the originals. */
    takeOriginals: (): FaultyOrigin => {
      for (const { key, read } of Object.values(listOriginals()).flat()) {
        const file = within('disk/originals', key);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, read());
      }
      return {
        settings: { STORAGE: 'filesystem', STORAGE_DIR: join(seen, 'originals') },
        kinds: createKinds('originals'),
        close: () => Promise.resolve(),
      };
    },
    /** Renderings that were stored since a time, in milliseconds since 1970. */
    countStoredSince: (sinceMs: number): number =>
      listFiles(join(store, 'results')).filter((file) => statSync(file).mtimeMs >= sinceMs).length,
    /** Files that are neither original nor rendering. */
    listTemporary: () => [...listFiles(join(store, 'incoming')), ...listFiles(within('tmp'))],
    close: async () => {
      await fuse?.close();
      if (isBounded) execFileSync('umount', ['--lazy', within('disk/renderings')]);
      await rm(base, { recursive: true });
    },
  };
}

/** A disk of its own in memory, as root. */
function mountMemory(folder: string): boolean {
  try {
    const options = ['-t', 'tmpfs', '-o', `size=${DISK_BYTES}`, 'tmpfs', folder];
    execFileSync('mount', options, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Writes until nothing more goes onto the disk. */
function fill(file: string): void {
  const piece = Buffer.alloc(BALLAST_PIECE_BYTES);
  try {
    for (let bytes = 0; bytes <= DISK_BYTES; bytes += piece.length) appendFileSync(file, piece);
  } catch {
    // Full, but for a few pages.
  }
}
