import { type FilteredArchitecture, filteredArchitectures, type Numbers } from './system-calls.ts';

/**
 * System calls that a video decoder may make; all others are refused. They are those that Debian's ffmpeg made when it
 * decoded one picture of each codec in one thread, with their siblings in other versions of glibc, and those of
 * bubblewrap, which waits for it. The list has no call that creates a process, a thread, a socket or a file system, or
 * that reaches another process; `openat` finds a root that is read-only.
 */
const allowed = {
  files: {
    read: [0, 63],
    write: [1, 64],
    open: [2, undefined],
    close: [3, 57],
    stat: [4, undefined],
    fstat: [5, 80],
    lstat: [6, undefined],
    lseek: [8, 62],
    ioctl: [16, 29],
    pread64: [17, 67],
    readv: [19, 65],
    writev: [20, 66],
    access: [21, undefined],
    fcntl: [72, 25],
    getcwd: [79, 17],
    readlink: [89, undefined],
    statfs: [137, 43],
    getdents64: [217, 61],
    openat: [257, 56],
    newfstatat: [262, 79],
    readlinkat: [267, 78],
    faccessat: [269, 48],
    statx: [332, 291],
    faccessat2: [439, 439],
  },
  memory: {
    mmap: [9, 222],
    mprotect: [10, 226],
    munmap: [11, 215],
    brk: [12, 214],
    mremap: [25, 216],
    madvise: [28, 233],
    mlock: [149, 228],
    set_mempolicy: [238, 237],
    get_mempolicy: [239, 236],
  },
  'itself and time': {
    rt_sigaction: [13, 134],
    rt_sigprocmask: [14, 135],
    rt_sigreturn: [15, 139],
    poll: [7, undefined],
    sched_yield: [24, 124],
    nanosleep: [35, 101],
    getpid: [39, 172],
    execve: [59, 221],
    exit: [60, 93],
    wait4: [61, 260],
    uname: [63, 160],
    gettimeofday: [96, 169],
    getrusage: [98, 165],
    sysinfo: [99, 179],
    times: [100, 153],
    getuid: [102, 174],
    getgid: [104, 176],
    geteuid: [107, 175],
    getegid: [108, 177],
    prctl: [157, 167],
    arch_prctl: [158, undefined],
    gettid: [186, 178],
    futex: [202, 98],
    sched_getaffinity: [204, 123],
    set_tid_address: [218, 96],
    clock_gettime: [228, 113],
    clock_getres: [229, 114],
    clock_nanosleep: [230, 115],
    exit_group: [231, 94],
    ppoll: [271, 73],
    set_robust_list: [273, 99],
    prlimit64: [302, 261],
    getrandom: [318, 278],
    rseq: [334, 293],
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Numbers>>>>;

/** Lists the numbers of the calls that a decoder may make on a processor. */
export function listDecoderCalls(architecture: FilteredArchitecture): readonly number[] {
  const column = filteredArchitectures.indexOf(architecture);
  return Object.values(allowed).flatMap((rows) =>
    Object.values<Numbers>(rows).flatMap((numbers) => numbers[column] ?? []),
  );
}
