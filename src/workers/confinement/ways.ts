import { arch } from 'node:os';
import { composeBubblewrap } from './bubblewrap.ts';
import { composeOwnRoot } from './own-root.ts';
import type { ProgramFiles } from './program-files.ts';
import { isFiltered } from './seccomp-filter.ts';

/** Restrictions of a sandbox. */
export interface Walls {
  /** `own`: a PID and an IPC namespace without other processes. */
  readonly processes: 'own' | 'shared';
  /** `own`: a mount namespace whose root contains only the files that Node and sharp need, read-only. */
  readonly files: 'own' | 'shared';
  /** `none`: a network namespace without a usable interface. */
  readonly network: 'none' | 'shared';
  /**
   * `own`: a user without other processes; `namespace`: a user namespace, so that the worker can read neither the
   * memory nor the environment of other processes; `shared`: our user, with all its files.
   */
  readonly user: 'own in a namespace' | 'own' | 'namespace' | 'shared';
  /** `filtered`: calls that a decoder does not need are refused (seccomp(2)). */
  readonly systemCalls: 'filtered' | 'all';
}

/** A sandbox that works on this host. */
export interface WorkingWay extends Walls {
  /** Unique name: the programs of the sandbox, for the log. */
  readonly name: string;
  /** Reasons why stronger sandboxes do not work on this host. */
  readonly refusals: readonly string[];
}

/** Parameters of one start. */
export interface Start {
  /** User of the worker; `undefined`: ours. */
  readonly userId: number | undefined;
  /** Files that the worker sees in its own root. */
  readonly files: ProgramFiles;
}

/** Command before the confined program, and contents of the descriptors that it names. */
export interface Composition {
  readonly words: readonly string[];
  readonly inputs?: readonly Uint8Array[];
}

/** A sandbox: its programs and its restrictions. */
export interface Way {
  /** Programs of the sandbox, for the log. */
  readonly name: string;
  readonly walls: Walls;
  /** Programs that must be installed, besides those that the probe starts. */
  readonly needs?: readonly string[];
  /** Programs that run in the worker's own root; `undefined` without such a root. */
  readonly rootPrograms?: readonly string[];
  readonly compose: (start: Start) => Composition;
}

/** Ends the worker with its parent, so that no orphan remains if the service is killed. */
const END_WITH_PARENT = ['--pdeathsig', 'KILL'];

const NO_NEW_PRIVILEGES = ['setpriv', '--no-new-privs', '--'];

/** Changes to a user who owns no file on this machine; needs root. By number: passwd has no name for the user. */
const becomeUser = (userId: number | undefined, ...options: string[]): string[] => {
  const id = String(userId);
  const user = ['--reuid', id, '--regid', id, '--clear-groups'];
  return ['setpriv', ...(userId === undefined ? [] : user), ...options, '--no-new-privs', '--'];
};

/**
 * The first process of a PID namespace, a shell. Node is not: none of its own signals would end it then, not even
 * SIGKILL. The shell's message about a killed program is discarded; dash keeps the standard error that it was started
 * with.
 */
const FIRST_PROCESS = [
  ...['/bin/sh', '-c', 'exec 9>&2 2>&-; exec /bin/sh -c "$@"', 'sh'],
  ...['"$@" 2>&9 9>&-; exit $?', 'sh'],
];

const NEW_PROCESSES = ['--ipc', '--pid', '--fork', '--kill-child'];

/** These need no privileges, unless the kernel or a container's seccomp profile refuses. */
const OWN_NAMESPACES = ['unshare', '--user', '--net', '--'];
const OWN_PROCESSES = ['unshare', '--user', '--net', ...NEW_PROCESSES, '--', ...FIRST_PROCESS];

const whole = {
  processes: 'own',
  files: 'own',
  network: 'none',
  systemCalls: isFiltered(arch()) ? 'filtered' : 'all',
} as const;
const withoutFilter = { ...whole, systemCalls: 'all' } as const;
const withoutFiles = { ...withoutFilter, files: 'shared' } as const;
const networkAlone = { ...withoutFiles, processes: 'shared' } as const;
const nothing = { ...networkAlone, network: 'shared' } as const;

const ownRootPrograms = ['/bin/sh', 'setpriv'];
/** Drops all capabilities that bubblewrap would leave to a user in a namespace, on the way into the root. */
const insideOwnRoot = [
  ...['setpriv', '--bounding-set=-all', '--inh-caps=-all', '--no-new-privs', '--'],
  ...FIRST_PROCESS,
];

/** Sandboxes for root, strongest first; a worker has a user of its own. */
const waysOfRoot: readonly Way[] = [
  {
    name: 'bubblewrap',
    walls: { ...whole, user: 'own in a namespace' },
    needs: ['bwrap'],
    rootPrograms: [],
    compose: ({ userId, files }) => composeBubblewrap(becomeUser(userId), files, []),
  },
  {
    name: 'bubblewrap without user namespaces',
    walls: { ...whole, user: 'own' },
    needs: ['bwrap'],
    rootPrograms: ['setpriv'],
    compose: ({ userId, files }) =>
      composeBubblewrap([], files, becomeUser(userId, '--bounding-set=-all', '--inh-caps=-all')),
  },
  {
    name: 'unshare with a root of its own',
    walls: { ...withoutFilter, user: 'own in a namespace' },
    rootPrograms: ownRootPrograms,
    compose: ({ userId, files }) =>
      composeOwnRoot(becomeUser(userId, ...END_WITH_PARENT), files, insideOwnRoot),
  },
  {
    name: 'unshare',
    walls: { ...withoutFiles, user: 'own in a namespace' },
    compose: ({ userId }) => ({
      words: [...becomeUser(userId, ...END_WITH_PARENT), ...OWN_PROCESSES],
    }),
  },
  {
    name: 'unshare without user namespaces',
    walls: { ...withoutFiles, user: 'own' },
    compose: ({ userId }) => ({
      words: [
        ...['setpriv', ...END_WITH_PARENT, '--', 'unshare', '--net', ...NEW_PROCESSES, '--'],
        ...[...FIRST_PROCESS, ...becomeUser(userId)],
      ],
    }),
  },
  {
    name: 'setpriv',
    walls: { ...nothing, user: 'own' },
    compose: ({ userId }) => ({ words: becomeUser(userId) }),
  },
  {
    name: 'unshare of the network',
    walls: { ...networkAlone, user: 'shared' },
    compose: () => ({ words: ['unshare', '--net', '--', ...NO_NEW_PRIVILEGES] }),
  },
];

const waysOfOthers: readonly Way[] = [
  {
    name: 'bubblewrap',
    walls: { ...whole, user: 'namespace' },
    needs: ['bwrap'],
    rootPrograms: [],
    compose: ({ files }) => composeBubblewrap([], files, []),
  },
  {
    name: 'unshare with a root of its own',
    walls: { ...withoutFilter, user: 'namespace' },
    rootPrograms: ownRootPrograms,
    compose: ({ files }) =>
      composeOwnRoot(becomeUser(undefined, ...END_WITH_PARENT), files, insideOwnRoot),
  },
  {
    name: 'unshare',
    walls: { ...withoutFiles, user: 'namespace' },
    compose: () => ({ words: [...becomeUser(undefined, ...END_WITH_PARENT), ...OWN_PROCESSES] }),
  },
  {
    name: 'unshare of the network',
    walls: { ...networkAlone, user: 'namespace' },
    compose: () => ({ words: [...OWN_NAMESPACES, ...NO_NEW_PRIVILEGES] }),
  },
];

/** Last resorts. */
const waysOfAll: readonly Way[] = [
  {
    name: 'setpriv',
    walls: { ...nothing, user: 'shared' },
    compose: () => ({ words: NO_NEW_PRIVILEGES }),
  },
  { name: 'limits', walls: { ...nothing, user: 'shared' }, compose: () => ({ words: [] }) },
];

/** Returns the sandboxes to probe, strongest first. */
export function waysFor({ isRoot }: { readonly isRoot: boolean }): readonly Way[] {
  return [...(isRoot ? waysOfRoot : waysOfOthers), ...waysOfAll];
}
