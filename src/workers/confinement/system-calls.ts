/** Processors with a seccomp filter, by Node's names. */
export const filteredArchitectures = ['x64', 'arm64'] as const;

export type FilteredArchitecture = (typeof filteredArchitectures)[number];

/** Number of a system call by processor; `undefined` if missing there. */
type Numbers = readonly [x64: number | undefined, arm64: number | undefined];

/** System call numbers by name, grouped by purpose. */
export type SystemCalls = Readonly<Record<string, Readonly<Record<string, Numbers>>>>;

export function numbersOf(calls: SystemCalls, architecture: FilteredArchitecture): number[] {
  const column = filteredArchitectures.indexOf(architecture);
  const numbers = Object.values(calls).flatMap((group) => Object.values(group));
  return numbers.flatMap((each) => each[column] ?? []);
}

/** Calls since Linux 5.1 have the same number on all processors. */
const everywhere = (number: number): Numbers => [number, number];

/** Calls denied with EPERM; numbers from Linux' `syscall_64.tbl` and `asm-generic/unistd.h`. */
export const denied: SystemCalls = {
  'other processes': {
    ptrace: [101, 117],
    process_vm_readv: [310, 270],
    process_vm_writev: [311, 271],
    kcmp: [312, 272],
    process_madvise: everywhere(440),
    pidfd_getfd: everywhere(438),
  },
  'new processes': {
    fork: [57, undefined],
    vfork: [58, undefined],
    execveat: [322, 281],
    // Sessions are scheduling groups, across which niceness has no effect.
    setsid: [112, 157],
  },
  'mounts and namespaces': {
    mount: [165, 40],
    umount2: [166, 39],
    pivot_root: [155, 41],
    chroot: [161, 51],
    unshare: [272, 97],
    setns: [308, 268],
    open_tree: everywhere(428),
    move_mount: everywhere(429),
    fsopen: everywhere(430),
    fsconfig: everywhere(431),
    fsmount: everywhere(432),
    fspick: everywhere(433),
    mount_setattr: everywhere(442),
    open_tree_attr: everywhere(467),
    name_to_handle_at: [303, 264],
    open_by_handle_at: [304, 265],
    fanotify_init: [300, 262],
  },
  'parts of the kernel that were often attacked': {
    bpf: [321, 280],
    perf_event_open: [298, 241],
    add_key: [248, 217],
    request_key: [249, 218],
    keyctl: [250, 219],
    userfaultfd: [323, 282],
    modify_ldt: [154, undefined],
    personality: [135, 92],
    vmsplice: [278, 75],
    migrate_pages: [256, 238],
    move_pages: [279, 239],
    memfd_secret: everywhere(447),
    lookup_dcookie: [212, 18],
  },
  'the machine': {
    kexec_load: [246, 104],
    kexec_file_load: [320, 294],
    init_module: [175, 105],
    finit_module: [313, 273],
    delete_module: [176, 106],
    reboot: [169, 142],
    swapon: [167, 224],
    swapoff: [168, 225],
    quotactl: [179, 60],
    quotactl_fd: everywhere(443),
    acct: [163, 89],
    syslog: [103, 116],
    settimeofday: [164, 170],
    clock_settime: [227, 112],
    clock_adjtime: [305, 266],
    adjtimex: [159, 171],
    sethostname: [170, 161],
    setdomainname: [171, 162],
    iopl: [172, undefined],
    ioperm: [173, undefined],
  },
};

/** Calls denied with ENOSYS, so that glibc uses `clone`, whose flags a filter can read, and Node no io_uring. */
export const deniedAsUnimplemented: SystemCalls = {
  'for which programs have a fallback': {
    clone3: everywhere(435),
    io_uring_setup: everywhere(425),
    io_uring_enter: everywhere(426),
    io_uring_register: everywhere(427),
  },
};

/** Calls allowed for some values of their first argument. */
export const threads: SystemCalls = { 'new threads': { clone: [56, 220] } };
export const sockets: SystemCalls = {
  'new sockets': { socket: [41, 198], socketpair: [53, 199] },
};
