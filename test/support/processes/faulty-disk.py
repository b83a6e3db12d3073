#!/usr/bin/python3
"""Mounts a directory through FUSE, with faults.

    faulty-disk.py MOUNT_POINT DIRECTORY

Reads faults from the standard input, one a line, each for one top directory:

    renderings delay 0.5     delays every system call by 0.5 seconds
    renderings hang          blocks every system call until the next fault, for at most 30 seconds
    renderings fail          fails every system call with EIO
    renderings none          ends the fault

Prints each line once the fault is in effect. Unmounts and exits at the end of the standard input.
Needs python3-fusepy and fuse3 of Debian.
"""

import errno
import os
import subprocess
import sys
import threading

from fusepy import FUSE, FuseOSError, Operations

# The limit is necessary because the process that sets the next fault can hang, too: an exec closes files on this disk,
# and /proc is empty until then.
MAX_HANG_SECONDS = 30

# Faults by top directory, and the events that end them.
faults = {}
endings = {}


def apply_fault(path):
    top = path.split('/')[1]
    fault = faults.get(top)
    if fault is None:
        return
    kind, *arguments = fault
    if kind == 'fail':
        raise FuseOSError(errno.EIO)
    endings[top].wait(float(arguments[0]) if kind == 'delay' else MAX_HANG_SECONDS)


class FaultyDisk(Operations):
    def __init__(self, directory):
        self.directory = directory

    # fusepy calls this for every operation, with the path as the first argument.
    def __call__(self, operation, path, *arguments):
        if not hasattr(self, operation):
            raise FuseOSError(errno.EFAULT)
        apply_fault(path or '/')
        if operation in ('chmod', 'mkdir', 'mknod', 'readlink', 'rmdir', 'unlink'):
            return getattr(os, operation)(self.real(path), *arguments)
        return getattr(self, operation)(path, *arguments)

    def real(self, path):
        return self.directory + path

    def getattr(self, path, fh=None):
        status = os.lstat(self.real(path))
        names = ('atime', 'ctime', 'mtime')
        numbers = ('gid', 'mode', 'nlink', 'size', 'uid', 'blocks')
        times = {f'st_{name}': getattr(status, f'st_{name}_ns') for name in names}
        return {**times, **{f'st_{name}': getattr(status, f'st_{name}') for name in numbers}}

    use_ns = True

    def readdir(self, path, fh):
        return ['.', '..', *os.listdir(self.real(path))]

    def rename(self, old, new):
        os.rename(self.real(old), self.real(new))

    def truncate(self, path, length, fh=None):
        os.truncate(self.real(path), length)

    def utimens(self, path, times=None):
        os.utime(self.real(path), ns=times)

    def statfs(self, path):
        status = os.statvfs(self.real(path))
        names = ('bavail', 'bfree', 'blocks', 'bsize', 'favail', 'ffree', 'files', 'flag', 'frsize', 'namemax')
        return {f'f_{name}': getattr(status, f'f_{name}') for name in names}

    def open(self, path, flags):
        return os.open(self.real(path), flags & ~(os.O_CREAT | os.O_EXCL))

    def create(self, path, mode, fi=None):
        return os.open(self.real(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def read(self, path, size, offset, fh):
        return os.pread(fh, size, offset)

    def write(self, path, data, offset, fh):
        return os.pwrite(fh, data, offset)

    def fsync(self, path, datasync, fh):
        os.fdatasync(fh)

    def release(self, path, fh):
        os.close(fh)


def read_faults(mount_point):
    for line in sys.stdin:
        top, kind, *arguments = line.split()
        ended = endings.get(top)
        endings[top] = threading.Event()
        faults[top] = None if kind == 'none' else (kind, *arguments)
        if ended is not None:
            ended.set()
        print(line, end='', flush=True)
    faults.clear()
    for event in endings.values():
        event.set()
    subprocess.run(['fusermount3', '-u', '-z', mount_point], check=False)
    os._exit(0)


mount_point, directory = sys.argv[1:]
threading.Thread(target=read_faults, args=[mount_point], daemon=True).start()
FUSE(FaultyDisk(directory), mount_point, foreground=True, attr_timeout=0, entry_timeout=0)
