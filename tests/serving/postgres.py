"""A real PostgreSQL on loopback in a temporary folder, for as long as a test session."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest


def binaries():
    """The folder with initdb and postgres: on PATH, or where Debian puts it."""
    if found := shutil.which("postgres"):
        return Path(found).parent
    return next(
        (file.parent for file in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))[::-1]), None
    )


@contextmanager
def postgres():
    """Start one; yields its URL."""
    programs = binaries()
    if programs is None:
        pytest.skip("needs PostgreSQL's server: apt-get install postgresql (.ci/run does)")
    # It refuses to run as root: then it runs as the user that its package made.
    user = "postgres" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="listenwell-postgres-"))
    if user:
        shutil.chown(folder, pwd.getpwnam(user).pw_uid)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "data"
    quiet = {"user": user, "cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", "listener", "-A", "trust", "-E", "UTF8", "--no-sync"],
            check=True,
            **quiet,
        )
        options = (
            f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder} -c fsync=off"
        )
        control = [programs / "pg_ctl", "-D", data, "-w", "-t", "30"]
        subprocess.run([*control, "-o", options, "start"], check=True, **quiet)
        try:
            yield f"postgresql://listener@127.0.0.1:{port}/postgres"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], check=True, **quiet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
