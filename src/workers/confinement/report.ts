import { getPriority } from 'node:os';
import type { Lane } from '../../pipeline/ports.ts';
import { readProcessFile } from '../process-tree.ts';
import { FIRST_TO_KILL, RESERVED_BYTES, type Sandbox } from './sandbox.ts';

/** Restrictions of a worker, as found on a running one; `undefined`: not bounded. */
export interface Confinement {
  readonly sandbox: Sandbox['name'];
  /** Reasons why stronger sandboxes do not work on this host. */
  readonly refusals: readonly string[];
  /** Whether the worker has processes, files, IPC and a network of its own. */
  readonly isIsolated: boolean;
  /**
   * `own`: a user without other processes; `namespace`: a user namespace, so that the worker can read neither the
   * memory nor the environment of other processes; `shared`: our user, with all its files.
   */
  readonly user: 'own' | 'namespace' | 'shared';
  /** Whether calls that a decoder does not need are refused (seccomp(2)). */
  readonly isFiltered: boolean;
  /** Whether the worker has any privilege of root (capabilities(7)). */
  readonly hasPrivileges: boolean;
  /** Whether programs that it starts cannot gain privileges (prctl PR_SET_NO_NEW_PRIVS). */
  readonly noNewPrivileges: boolean;
  /**
   * Private writable memory (RLIMIT_DATA, without V8's reservations), in bytes; memory shared with children is not
   * counted.
   */
  readonly memoryBytes: number | undefined;
  /** Largest file that the worker may write (RLIMIT_FSIZE), in bytes. */
  readonly fileBytes: number | undefined;
  /** Most open descriptors, sockets included (RLIMIT_NOFILE). */
  readonly descriptors: number | undefined;
  /** Whether the kernel kills the worker first when memory runs out (oom_score_adj). */
  readonly isFirstToKill: boolean;
  /** Niceness by lane; that of the main process is 0. */
  readonly priority: Readonly<Record<Lane, number | undefined>>;
}

/** Reads the restrictions of a running worker from the kernel; those that it does not report are the sandbox's. */
export function readConfinement(
  sandbox: Sandbox,
  refusals: readonly string[],
  processIds: Readonly<Record<Lane, number | undefined>>,
): Confinement {
  const processId = processIds.light ?? processIds.heavy;
  const limits = readProcessFile(processId, 'limits');
  const limitOf = (name: string): number | undefined => {
    const [, value] = new RegExp(`^${name} +(\\d+) `, 'm').exec(limits) ?? [];
    return value === undefined ? undefined : Number(value);
  };
  const dataBytes = limitOf('Max data size');
  const status = readProcessFile(processId, 'status');
  const userOf = (text: string): string | undefined => /^Uid:\t(\d+)/m.exec(text)?.[1];
  const ourUser = userOf(readProcessFile('self', 'status'));
  const isIsolated = sandbox.isIsolated && /^NSpid:\t\d+\t/m.test(status);
  const withoutOwnUser = isIsolated && ourUser !== '0' ? 'namespace' : 'shared';
  return {
    sandbox: sandbox.name,
    refusals,
    isIsolated,
    user: sandbox.hasOwnUsers && userOf(status) !== ourUser ? 'own' : withoutOwnUser,
    // The kernel reports Docker's filter alike, which allows more.
    isFiltered: sandbox.hasFilter && /^Seccomp:\t2$/m.test(status),
    hasPrivileges: /^Cap(Inh|Prm|Eff|Amb):\t0*[1-9a-f]/m.test(status),
    noNewPrivileges: /^NoNewPrivs:\t1$/m.test(status),
    memoryBytes: dataBytes === undefined ? undefined : dataBytes - RESERVED_BYTES,
    fileBytes: limitOf('Max file size'),
    descriptors: limitOf('Max open files'),
    isFirstToKill: Number(readProcessFile(processId, 'oom_score_adj')) === FIRST_TO_KILL,
    priority: { light: readPriority(processIds.light), heavy: readPriority(processIds.heavy) },
  };
}

/** Possible attacks of a compromised worker, by missing restriction. */
const dangers: readonly (readonly [isOpen: (found: Confinement) => boolean, danger: string])[] = [
  [
    ({ isIsolated, user }) => !isIsolated && user !== 'own',
    "stop and end the service and other workers, read and delete files of the service's user",
  ],
  [({ isIsolated, user }) => !isIsolated && user === 'own', 'read files that every user may read'],
  [({ isIsolated }) => !isIsolated, 'use the network'],
  [
    ({ user }) => user === 'shared',
    'read the memory and the environment of the service, with its credentials',
  ],
  [({ isFiltered }) => !isFiltered, 'try any system call on the kernel'],
  [({ hasPrivileges }) => hasPrivileges, 'use privileges of root'],
  [({ noNewPrivileges }) => !noNewPrivileges, 'start programs with more privileges'],
];

/** Lists the possible attacks of a compromised worker; empty if it is fully confined (spec, section 7). */
export function listDangers(confinement: Confinement): string[] {
  return dangers.flatMap(([isOpen, danger]) => (isOpen(confinement) ? [danger] : []));
}

/** Describes the confinement in a sentence for an operator. */
export function describeConfinement(confinement: Confinement): string {
  const found = listDangers(confinement);
  const { sandbox, refusals } = confinement;
  if (found.length === 0) {
    return `Render workers are confined whole (${sandbox}): a compromised worker sees no process, file or network but its own`;
  }
  const reasons = refusals.length === 0 ? '' : `. No more is possible here: ${refusals.join('; ')}`;
  return `Render workers are confined in part (${sandbox}): if compromised, they could ${found.join(', ')}${reasons}`;
}

function readPriority(processId: number | undefined): number | undefined {
  try {
    return processId === undefined ? undefined : getPriority(processId);
  } catch {
    return undefined; // the process has just ended
  }
}
