import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type DiskFault, mountFaultyDisk } from '../../../test/support/processes/faulty-disk.ts';
import { listOriginals } from '../originals.ts';
import { type FaultyOrigin, HANGING_SHADOW_MS, SHADOW_MS } from './faulty-origin.ts';
import type { WaveKind } from './waves.ts';

/** The disk of renderings holds more than they may take, so that it is full only where something else fills it. */
const STORE_BYTES = 64 * 2 ** 20;
const DISK_BYTES = 1.5 * STORE_BYTES;
const BALLAST_PIECE_BYTES = 256 * 1024;

const WAVE_MS = 12_000;

/** A system call on a slow disk is late by a fifth of a second. */
const faults: Readonly<Record<string, DiskFault>> = {
  slow: 'delay 0.2',
  hanging: 'hang',
  failing: 'fail',
};

/** Folders of originals and renderings on disks that can be made to fail. */
export interface FaultyDisks {
  /** For the service: where renderings are stored, and what else is written. */
  readonly settings: Readonly<Record<string, string>>;
  /** What may go wrong with the renderings. */
  readonly kinds: readonly WaveKind[];
  /** What cannot go wrong on this machine, and why. */
  readonly missing: readonly string[];
  /** Puts all originals into the folder of the originals. */
  readonly takeOriginals: () => FaultyOrigin;
  /** Renderings that were stored since a time, in milliseconds since 1970. */
  readonly countStoredSince: (sinceMs: number) => number;
  /** Files that are neither original nor rendering. */
  readonly listTemporary: () => readonly string[];
  readonly close: () => Promise<void>;
}

/** Mounts them, as far as this machine can. */
export async function mountFaultyDisks(): Promise<FaultyDisks> {
  const base = await mkdtemp(join(tmpdir(), 'darkroom-soak-'));
  const within = (...names: string[]): string => join(base, ...names);
  for (const name of ['disk/originals', 'disk/renderings', 'mounted', 'tmp']) {
    mkdirSync(within(name), { recursive: true });
  }
  const missing: string[] = [];
  const isBounded = mountMemory(within('disk/renderings'));
  if (!isBounded) missing.push('no disk is ever full: to mount a tmpfs takes root');
  mkdirSync(within('disk/renderings/store'));
  const fuse = await mountFaultyDisk(within('mounted'), within('disk'));
  if (fuse === undefined) {
    missing.push(
      `no disk is slow or fails: that takes /dev/fuse, and Debian's fuse3 and python3-fusepy`,
    );
  }
  const seen = fuse === undefined ? within('disk') : within('mounted');
  const createKinds = (victim: WaveKind['victim']): WaveKind[] =>
    Object.entries(faults).flatMap(([name, fault]) => {
      if (fuse === undefined) return [];
      return {
        name: `${name} disk of ${victim}`,
        victim,
        lengthMs: WAVE_MS,
        shadowMs: fault === 'fail' ? SHADOW_MS : HANGING_SHADOW_MS,
        begin: () => fuse.tell(victim, fault),
        end: () => fuse.tell(victim, 'none'),
      };
    });
  const ballast = within('disk/renderings/ballast');
  const full: WaveKind = {
    name: 'full disk of renderings',
    victim: 'renderings',
    lengthMs: WAVE_MS,
    shadowMs: SHADOW_MS,
    begin: () => fill(ballast),
    end: () => rmSync(ballast),
  };
  const store = within('disk/renderings/store');
  return {
    settings: {
      RESULT_STORE: 'filesystem',
      RESULT_STORE_DIR: join(seen, 'renderings/store'),
      RESULT_STORE_MAX_BYTES: String(STORE_BYTES),
      TMPDIR: within('tmp'),
    },
    kinds: [...createKinds('renderings'), ...(isBounded ? [full] : [])],
    missing,
    takeOriginals: () => {
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
    countStoredSince: (sinceMs) =>
      listFiles(join(store, 'results')).filter((file) => statSync(file).mtimeMs >= sinceMs).length,
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

function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
