"""A file system of its own, small enough to be full at once."""

import os
import pathlib
import subprocess

MIB = 1 << 20


def allowed():
    """Whether mounting is allowed here."""
    return subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


class Disk:
    """A file system of so many bytes."""

    def __init__(self, path, size):
        self.path, self.ballast = pathlib.Path(path), pathlib.Path(path) / "ballast"
        self.path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(self.path)], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", str(self.path)], check=True)

    def free(self):
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def fill(self, left=0):
        """Leaves so many bytes, or none."""
        with open(self.ballast, "wb", buffering=0) as file:
            try:
                while (size := min(self.free() - left, MIB)) > 0:
                    file.write(bytes(size))
            except OSError:
                pass

    def clear(self):
        self.ballast.unlink()
