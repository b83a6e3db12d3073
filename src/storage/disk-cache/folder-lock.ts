import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { constants, existsSync } from 'node:fs';
import { type FileHandle, lstat, open, readdir, statfs, unlink } from 'node:fs/promises';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { systemCodeOf } from '../filesystem/system-errors.ts';

/** Result of claiming a folder. */
export type FolderClaim =
  /** The folder is ours until `release`, or until the process ends. */
  | { readonly kind: 'owned'; readonly release: () => void }
  /** Another process owns the folder; `ended` resolves when its ownership may be over, and after `release`. */
  | { readonly kind: 'taken'; readonly ended: Promise<void>; readonly release: () => void };

/** Name of a socket: 128 random bits. */
const SOCKET_NAME = /^[\da-f]{32}$/;

/** Longest wait before two processes that claim a folder at the same moment retry, in milliseconds. */
const MAX_RETRY_MS = 50;

/** Network file systems, by Linux's magic numbers (statfs(2), linux/magic.h). */
const NETWORK_FILE_SYSTEMS: ReadonlySet<number> = new Set([
  0x6969, // NFS
  0x517b, // SMB
  0xfe534d42, // SMB2
  0xff534d42, // CIFS
  0x00c36400, // Ceph
  0x0bd00bd0, // Lustre
]);

/**
 * Claims a folder for this process. The owner listens at a socket in the folder: a process that can connect to a socket
 * knows that its owner lives, and the kernel closes the socket when that process ends, however it ends. This also works
 * between containers of one host that share the folder as a volume: a socket belongs to its file, not to a network or a
 * process table. The connection stays open, so that others learn of the end at once.
 *
 * A claim first looks for a living socket, then listens at its own, and looks once more. Of two concurrent claims, the
 * later one to listen sees the other and steps back, so there are never two owners. The next owner removes sockets of
 * ended processes.
 *
 * Node has no flock(2), and a lock by time stamps or process ids ends too early or too late: process ids are valid in
 * one container, and a process that was stopped for a while would continue as a second owner.
 *
 * Not covered: hosts that share a folder by a network file system, which do not see each other's sockets (see
 * `isOnNetwork`); removal of a living socket; file systems without sockets, where this throws.
 *
 * @param folder for the sockets alone; it must exist
 * @throws Error of a system call: sockets cannot be created there, or those of others not be connected to
 */
export async function claimFolder(folder: string): Promise<FolderClaim> {
  for (;;) {
    const handle = await open(folder, constants.O_RDONLY);
    const claim = await claimOnce(folder, handle).catch(async (error: unknown) => {
      await handle.close();
      throw error;
    });
    if (claim !== undefined) return claim;
    await wait(Math.random() * MAX_RETRY_MS);
  }
}

/** @returns `undefined` if another process claims the folder at the same time */
async function claimOnce(folder: string, handle: FileHandle): Promise<FolderClaim | undefined> {
  const place = findShortPath(folder, handle);
  const { living } = await askOthers(folder, place);
  if (living !== undefined) return waitFor(living, handle);
  const name = randomBytes(16).toString('hex');
  const release = await listen(join(place, name), handle);
  try {
    const others = await askOthers(folder, place, name);
    if (others.living === undefined) {
      for (const dead of others.dead) await removeSocket(join(folder, dead));
      return { kind: 'owned', release };
    }
    others.living.destroy();
  } catch (error) {
    release();
    throw error;
  }
  release();
  return undefined;
}

/** Whether a folder may be shared between hosts, where a claim does not work; only Linux reports this. */
export async function isOnNetwork(folder: string): Promise<boolean> {
  return NETWORK_FILE_SYSTEMS.has((await statfs(folder)).type);
}

/** Returns a short path of the folder: the address of a socket has at most 107 bytes (unix(7)). */
function findShortPath(folder: string, { fd }: FileHandle): string {
  // Only Linux has /proc. The entry itself is not checked: that would access the disk of the folder, which may hang.
  const open = '/proc/self/fd';
  return existsSync(open) ? `${open}/${fd}` : folder;
}

/** Returns a connection to another living process, or else the names of the sockets of ended ones. */
async function askOthers(folder: string, place: string, own?: string) {
  const dead: string[] = [];
  for (const name of await readdir(folder)) {
    if (name === own || !SOCKET_NAME.test(name)) continue;
    const living = await connect(join(place, name));
    if (living !== undefined) return { living, dead };
    dead.push(name);
  }
  return { living: undefined, dead };
}

/** Errors of a socket whose process has ended, or is about to release it. */
const DEAD: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOENT']);

/** @returns `undefined` if no process listens any more */
async function connect(path: string): Promise<Socket | undefined> {
  const socket = createConnection(path);
  try {
    await once(socket, 'connect');
    return socket;
  } catch (error) {
    if (DEAD.has(systemCodeOf(error))) return undefined;
    throw error;
  }
}

function waitFor(living: Socket, handle: FileHandle): FolderClaim {
  const ended = new Promise<void>((resolve) => {
    // An error also ends the socket. Nothing is sent, but only a socket that is being read emits its end.
    living.on('error', () => undefined).once('close', () => resolve());
    living.resume().unref();
  });
  void handle.close();
  return { kind: 'taken', ended, release: () => living.destroy() };
}

/** @returns a function that removes the socket and notifies the waiting processes */
async function listen(path: string, handle: FileHandle): Promise<() => void> {
  const waiting = new Set<Socket>();
  const server: Server = createServer((socket) => {
    waiting.add(socket);
    socket.on('error', () => undefined).once('close', () => waiting.delete(socket));
    socket.resume().unref();
  });
  server.listen(path);
  await once(server, 'listening');
  server.unref();
  return () => {
    // The path leads through the handle, and the server removes the socket by this path.
    server.close(() => void handle.close());
    for (const socket of waiting) socket.destroy();
  };
}

async function removeSocket(path: string): Promise<void> {
  const status = await lstat(path).catch(() => undefined);
  if (status?.isSocket()) await unlink(path).catch(() => undefined);
}
