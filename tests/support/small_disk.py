"""A file system of a few megabytes that can be filled and emptied, for the rest of a process and its children."""

import ctypes
import os
import resource
from pathlib import Path

_NEW_MOUNTS, _NEW_USER, _PRIVATE, _DETACH = 0x20000, 0x10000000, 0x44000, 2


class SmallDisk:
    """A file system in `folder` that only this process and its children see. Where none may be mounted (`is_mounted` is false), a
    process cannot write to its files while it is full."""

    def __init__(self, folder: Path, kilobytes: int) -> None:
        """Mount it. A process with several threads, or that must see what others mount later, forks first."""
        folder.mkdir(parents=True, exist_ok=True)
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"size={kilobytes}k".encode()
        self._folder, self._libc = folder, libc
        self.is_mounted = _own_mounts(libc) and libc.mount(b"small", bytes(folder), b"tmpfs", 0, options) == 0
        self._filler = folder / "filler"

    def fill(self, left: int = 0, process: int = 0) -> None:
        """Take all space, but for about so many bytes. `process`: the one that writes (0: this one)."""
        if not self.is_mounted:
            resource.prlimit(process, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
            return
        with self._filler.open("ab", buffering=0) as file:
            for size in (1 << 16, 1 << 12):
                try:
                    while file.write(bytes(size)):
                        pass
                except OSError:
                    continue
            file.truncate(max(0, file.tell() - left))

    def free(self, process: int = 0) -> None:
        """Give it back."""
        if not self.is_mounted:
            resource.prlimit(process, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self._filler.unlink(missing_ok=True)

    def remove(self) -> None:
        """Free it and take it away, with all its files."""
        self.free()
        if self.is_mounted:
            self._libc.umount2(bytes(self._folder), _DETACH)


def _own_mounts(libc: ctypes.CDLL) -> bool:
    """Give this process a table of mounts of its own; users other than root need a user namespace for that."""
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_MOUNTS | (_NEW_USER if user else 0)):
        return False
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return bool(libc.mount(b"none", b"/", None, _PRIVATE, None) == 0)
