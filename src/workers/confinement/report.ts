import { getPriority } from 'node:os';
import type { Lane } from '../../pipeline/ports.ts';
import { readProcessFile } from '../process-tree.ts';
import { canChangeUser } from './commands.ts';
import { FIRST_TO_KILL, RESERVED_BYTES, type Sandbox } from './sandbox.ts';

export interface Confinement {
  readonly sandbox: Sandbox['name'];
  readonly refusals: readonly string[];
  /** Whether the process has its own PID, mount, IPC and network namespaces. */
  readonly isIsolated: boolean;
  /** `own`: no other processes; `namespace`: cannot read others' memory or environment; `shared`: the service's. */
  readonly user: 'own' | 'namespace' | 'shared';
  /** Whether a seccomp(2) filter denies calls that a decoder does not need. */
  readonly isFiltered: boolean;
  /** Whether the process has any capability of root (capabilities(7)). */
  readonly hasPrivileges: boolean;
  /** Whether its children cannot gain privileges (prctl PR_SET_NO_NEW_PRIVS). */
  readonly noNewPrivileges: boolean;
}

/** Restrictions measured on a running worker; `undefined` means unlimited. */
export interface WorkerConfinement extends Confinement {
  /** Private writable memory in bytes (RLIMIT_DATA without V8's reservations), without memory shared with children. */
  readonly memoryBytes: number | undefined;
  /** Maximum size of a written file in bytes (RLIMIT_FSIZE). */
  readonly fileBytes: number | undefined;
  /** Maximum open descriptors (RLIMIT_NOFILE). */
  readonly descriptors: number | undefined;
  /** Whether the kernel kills the worker first when it runs out of memory (oom_score_adj). */
  readonly isFirstToKill: boolean;
  /** Niceness by lane; that of the main process is 0. */
  readonly priority: Readonly<Record<Lane, number | undefined>>;
}

/** Returns the restrictions of a sandbox, for processes that end too soon to be measured. */
export function confinementBy(
  { name, isIsolated, hasOwnUsers, hasFilter }: Sandbox,
  refusals: readonly string[],
): Confinement {
  const isUnconfined = name === 'unconfined';
  return {
    sandbox: name,
    refusals,
    isIsolated,
    user: hasOwnUsers ? 'own' : isIsolated ? 'namespace' : 'shared',
    isFiltered: hasFilter,
    hasPrivileges: isUnconfined && canChangeUser,
    noNewPrivileges: !isUnconfined,
  };
}

/** Reads the restrictions of a running worker from the kernel, or the sandbox's if the kernel does not report one. */
export function readConfinement(
  sandbox: Sandbox,
  refusals: readonly string[],
  processIds: Readonly<Record<Lane, number | undefined>>,
): WorkerConfinement {
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
    // The kernel reports Docker's filter, which allows more, in the same way.
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

/** Possible attacks of a compromised process, by missing restriction. */
const exposures: readonly (readonly [isOpen: (found: Confinement) => boolean, attack: string])[] = [
  [({ isIsolated }) => !isIsolated, 'use the network'],
  [
    ({ isIsolated, user }) => !isIsolated && user !== 'own',
    "stop and end the service and its workers, read and delete files of the service's user",
  ],
  [({ isIsolated, user }) => !isIsolated && user === 'own', 'read files that every user may read'],
  [
    ({ user }) => user === 'shared',
    'read the memory and the environment of the service, with its credentials',
  ],
  [({ isFiltered }) => !isFiltered, 'try any system call on the kernel'],
  [({ hasPrivileges }) => hasPrivileges, 'use privileges of root'],
  [({ noNewPrivileges }) => !noNewPrivileges, 'start programs with more privileges'],
];

/** Lists the possible attacks; empty in a full sandbox (contract §12). */
export function listExposures(confinement: Confinement): string[] {
  return exposures.flatMap(([isOpen, attack]) => (isOpen(confinement) ? [attack] : []));
}

/** Describes the confinement in words that follow "they are" or "it is". */
export function describeConfinement(confinement: Confinement, pronoun: 'they' | 'it'): string {
  const found = listExposures(confinement);
  const { sandbox, refusals } = confinement;
  if (found.length === 0) {
    return `confined whole (${sandbox}): if compromised, ${pronoun} could reach no process, file or network of others`;
  }
  const reasons =
    refusals.length === 0 ? '' : `. Stronger sandboxes failed: ${refusals.join('; ')}`;
  return `confined in part (${sandbox}): if compromised, ${pronoun} could ${found.join(', ')}${reasons}`;
}

export function describeWorkers(confinement: Confinement): string {
  return `Render workers are ${describeConfinement(confinement, 'they')}`;
}

function readPriority(processId: number | undefined): number | undefined {
  try {
    return processId === undefined ? undefined : getPriority(processId);
  } catch {
    return undefined; // the process has just ended
  }
}
