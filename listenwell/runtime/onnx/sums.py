"""Sums of large files, remembered: a file that did not change is read once, not at every start."""

import hashlib
import json
import time
from contextlib import suppress
from pathlib import Path

from listenwell.errors import InputError
from listenwell.files import cache_folder, sha256, written_whole

_SETTLED = 2 * 10**9
"""Nanoseconds. A file that was written just now can change again without a later time of change."""


def known_sha256(path: Path) -> str:
    """The sha256 sum of a file; size, place and time of change say whether the one remembered still holds."""
    resolved = path.resolve()
    status = resolved.stat()
    stamp = [status.st_size, status.st_mtime_ns, status.st_ino]
    name = hashlib.sha256(str(resolved).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    memory = cache_folder() / "sums" / f"{name}.json"
    with suppress(OSError, ValueError):
        if (remembered := json.loads(memory.read_text(encoding="utf-8")))["stamp"] == stamp:
            return str(remembered["sha256"])
    digest = sha256(resolved)
    if time.time_ns() - status.st_mtime_ns > _SETTLED:
        with suppress(InputError), written_whole(memory) as file:  # a full disk is no reason to stop here
            file.write(json.dumps({"stamp": stamp, "sha256": digest}).encode())
    return digest
