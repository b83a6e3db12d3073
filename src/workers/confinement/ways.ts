import { arch } from 'node:os';
import { composeBubblewrap } from './bubblewrap.ts';
import { composeOwnRoot } from './own-root.ts';
import type { ProgramFiles } from './program-files.ts';
import { isFiltered } from './seccomp-filter.ts';

/** What a way to start workers keeps them from. */
export interface Walls {
  /** `own`: a PID and an IPC namespace of its own, in which there is no other process. */
  readonly processes: 'own' | 'shared';
  /** `own`: a mount namespace with a root of its own, which has what Node and sharp need, read-only. */
  readonly files: 'own' | 'shared';
  /** `none`: a network namespace of its own, in which no interface leads anywhere. */
  readonly network: 'none' | 'shared';
  /**
   * `own`: a user that no other process is; `namespace`: a user namespace of its own, so that it can neither read the
   * memory nor the environment of any process; `shared`: ours, and whatever that user may read.
   */
  readonly user: 'own in a namespace' | 'own' | 'namespace' | 'shared';
  /** `filtered`: those that a decoder has no use for are refused (seccomp(2)). */
  readonly systemCalls: 'filtered' | 'all';
}

/** A way to start workers that was found to work here. */
export interface WorkingWay extends Walls {
  /** By which programs, for the log; no other way has that name. */
  readonly name: string;
  /** Why ways that would confine more do not work here. */
  readonly refusals: readonly string[];
}

/** What one start is made for. */
export interface Start {
  /** The user that the worker is to be; `undefined`: ours. */
  readonly userId: number | undefined;
  /** What it sees in a root of its own. */
  readonly files: ProgramFiles;
}

/** What goes before the program that is confined, and what is written to the descriptors that it names. */
export interface Composition {
  readonly words: readonly string[];
  readonly inputs?: readonly Uint8Array[];
}

/** A way to start workers: programs, and what they keep a worker from. */
export interface Way {
  /** By which programs, for the log. */
  readonly name: string;
  readonly walls: Walls;
  /** Programs that must be installed for it, besides those that are tried. */
  readonly needs?: readonly string[];
  /** Programs that it runs in a root of the worker's own; `undefined`: there is none. */
  readonly rootPrograms?: readonly string[];
  readonly compose: (start: Start) => Composition;
}

/** Ends with the process that has started it, so that nothing is left where the service is killed. */
const END_WITH_PARENT = ['--pdeathsig', 'KILL'];

const NO_NEW_PRIVILEGES = ['setpriv', '--no-new-privs', '--'];

/** Of no file on this machine the owner; takes a start as root. By number: no passwd has a name for it. */
const becomeUser = (userId: number | undefined, ...options: string[]): string[] => {
  const id = String(userId);
  const user = ['--reuid', id, '--regid', id, '--clear-groups'];
  return ['setpriv', ...(userId === undefined ? [] : user), ...options, '--no-new-privs', '--'];
};

/**
 * The first process of a PID namespace, a shell. Node is not: no signal of its own would end it then, not even SIGKILL.
 * What a shell says of a program that was killed goes nowhere; dash keeps the standard error that it was started with.
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
/** All that bubblewrap would leave to a user in a namespace is dropped on the way into the root. */
const insideOwnRoot = [
  ...['setpriv', '--bounding-set=-all', '--inh-caps=-all', '--no-new-privs', '--'],
  ...FIRST_PROCESS,
];

/** From the most to the least confining; a worker has a user of its own where we are root. */
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

/** Where nothing else works. */
const waysOfAll: readonly Way[] = [
  {
    name: 'setpriv',
    walls: { ...nothing, user: 'shared' },
    compose: () => ({ words: NO_NEW_PRIVILEGES }),
  },
  { name: 'limits', walls: { ...nothing, user: 'shared' }, compose: () => ({ words: [] }) },
];

/** The ways to start workers, the most confining first. */
export function waysFor({ isRoot }: { readonly isRoot: boolean }): readonly Way[] {
  return [...(isRoot ? waysOfRoot : waysOfOthers), ...waysOfAll];
}
