import { arch, platform } from 'node:os';
import { CHANNEL_DESCRIPTOR } from '../protocol.ts';
import {
  BUBBLEWRAP_NAMESPACES,
  becomeUser,
  bindFiles,
  canChangeUser,
  runBubblewrap,
} from './commands.ts';
import { listSystemProgram } from './program-files.ts';
import { findOnPath, LIMITS, type Sandbox, SHELL, type SpawnCommand } from './sandbox.ts';
import { assembleDecoderFilter, isFiltered } from './seccomp-filter.ts';

/** Sandboxes of video decoders (contract §12). Their channel is standard input and output. */

export interface DecoderProgram {
  /** Path without symbolic links. */
  readonly path: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly maxCpuSeconds: number;
}

/** Same as that of the heavy render that waits for the decoder. */
const NICENESS = 15;

const START_SCRIPT = `
{ ${LIMITS}
  ulimit -t "$2"
} 2>/dev/null
unset PWD OLDPWD SHLVL
shift 2
exec <&${CHANNEL_DESCRIPTOR} >&${CHANNEL_DESCRIPTOR} ${CHANNEL_DESCRIPTOR}>&-
command -v nice >/dev/null && exec nice -n ${NICENESS} "$@"
exec "$@"
`;

const BUBBLEWRAP_OPTIONS = [
  ...['--unshare-user', ...BUBBLEWRAP_NAMESPACES, '--unshare-cgroup-try', '--clearenv'],
];

/**
 * Lists the sandboxes that may work on this host, strongest first.
 *
 * @param mayBeWeaker whether to list sandboxes that do not meet contract §12
 * @param refusals receives the reasons why stronger ones cannot work
 */
export async function listDecoderSandboxes(
  program: DecoderProgram,
  mayBeWeaker: boolean,
  refusals: string[],
): Promise<readonly Sandbox[]> {
  const bubblewrap = await createBubblewrap(program).catch((error: Error) => {
    refusals.push(`bubblewrap: ${error.message}`);
    return [];
  });
  if (!mayBeWeaker) return bubblewrap;
  const unconfined = ['env', '-i', program.path];
  const weaker = { isIsolated: false, hasFilter: false } as const;
  return [
    ...bubblewrap,
    {
      ...weaker,
      name: 'setpriv',
      hasOwnUsers: canChangeUser,
      compose: (userId, memoryBytes) =>
        limit(program, memoryBytes, [...becomeUser(userId), ...unconfined]),
    },
    {
      ...weaker,
      name: 'unconfined',
      hasOwnUsers: false,
      compose: (_, memoryBytes) => limit(program, memoryBytes, unconfined),
    },
  ];
}

async function createBubblewrap(program: DecoderProgram): Promise<readonly Sandbox[]> {
  const processor = arch();
  if (platform() !== 'linux') throw new Error('this is not Linux');
  if (!isFiltered(processor)) throw new Error(`system calls are not filtered on ${processor}`);
  findOnPath('bwrap', program.environment.PATH);
  const files = await listSystemProgram(program.path, program.environment);
  const options = [...BUBBLEWRAP_OPTIONS, ...bindFiles(files)];
  const { words, inputs } = runBubblewrap(options, [assembleDecoderFilter(processor)]);
  return [
    {
      name: 'bubblewrap',
      isIsolated: true,
      hasOwnUsers: canChangeUser,
      hasFilter: true,
      compose: (userId, memoryBytes) => {
        const before = userId === undefined ? [] : becomeUser(userId);
        return limit(program, memoryBytes, [...before, ...words, program.path], inputs);
      },
    },
  ];
}

function limit(
  { maxCpuSeconds }: DecoderProgram,
  memoryBytes: number,
  command: readonly string[],
  inputs: readonly Uint8Array[] = [],
): SpawnCommand {
  const limits = [String(Math.ceil(memoryBytes / 1024)), String(maxCpuSeconds)];
  return { command: SHELL, words: ['-c', START_SCRIPT, 'sh', ...limits, ...command], inputs };
}
