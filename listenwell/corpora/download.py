"""Pinned downloads: an address, the sha256 sum of what must arrive, and a licence the user accepts.

A download goes on where it broke off. What arrives takes its final name only after its sum was checked;
a wrong sum deletes nothing: the file stays aside, and the error says where.
"""

import http.client
import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from listenwell.errors import DownloadError
from listenwell.files import disk_errors, sha256, written_whole
from listenwell.progress import progress

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Download:
    """One file at its publisher's."""

    url: str
    sha256: str
    target: str = ""
    """Where it goes, relative to the corpus's folder; an archive's parts go where `members` says."""
    members: tuple[tuple[str, str], ...] = ()
    """For a tar or zip archive: (name inside, target) pairs; nothing else is unpacked."""

    @property
    def file_name(self) -> str:
        """The last part of the address."""
        return PurePosixPath(self.url).name

    def targets(self) -> tuple[str, ...]:
        """Every file it brings."""
        return tuple(target for _, target in self.members) or (self.target or self.file_name,)


def pinned(base: str, sums: Mapping[str, str]) -> tuple[Download, ...]:
    """Downloads of files below one address, each with its sha256 sum."""
    return tuple(Download(f"{base}{name}", digest) for name, digest in sums.items())


def fetch(download: Download, folder: Path) -> list[Path]:
    """Bring one download into a corpus's folder; files that are already there are left alone."""
    targets = [folder / target for target in download.targets()]
    if all(target.exists() for target in targets):
        return targets
    aside = folder / f".{download.file_name}.{download.sha256[:12]}.part"
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        _receive(download.url, aside)
    if (actual := sha256(aside)) != download.sha256:
        odd = aside.with_suffix(f".{actual[:12]}.unexpected")
        aside.replace(odd)
        raise DownloadError(
            f"{download.url} gave a file with the sha256 sum {actual}, not the pinned {download.sha256}.",
            f"Nothing was deleted: what arrived is {odd}. The publisher may have changed it; look at it "
            "before you use it, or try again later.",
        )
    if download.members:
        _unpack(aside, download, folder)
        aside.unlink()
    else:
        targets[0].parent.mkdir(parents=True, exist_ok=True)
        aside.replace(targets[0])
    return targets


def _receive(url: str, aside: Path) -> None:
    """Append what is still missing to `aside`."""
    have = aside.stat().st_size if aside.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            goes_on = answer.status == 206
            length = int(answer.headers.get("Content-Length") or 0)
            total = length + (have if goes_on else 0)
            with (
                aside.open("ab" if goes_on else "wb") as file,
                progress(f"downloading {PurePosixPath(url).name}", total or None, "B") as advance,
            ):
                advance(have if goes_on else 0)
                received = 0
                while chunk := answer.read(_CHUNK):
                    file.write(chunk)
                    received += len(chunk)
                    advance(len(chunk))
            if length and received < length:
                raise DownloadError(
                    f"The connection to {url} broke off after {received} of {length} bytes.",
                    "Run the same command again: it goes on from there.",
                )
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # everything was there already
            return
        raise DownloadError(
            f"{url} answered {error.code} {error.reason}.",
            "The publisher may have moved it: fetch it by hand, and use --path.",
        ) from None
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise DownloadError(
            f"{url} cannot be reached: {getattr(error, 'reason', error)}.",
            "Check the network and run the same command again: it goes on where it stopped.",
        ) from None


def _unpack(archive: Path, download: Download, folder: Path) -> None:
    is_zip = zipfile.is_zipfile(archive)
    with zipfile.ZipFile(archive) if is_zip else tarfile.open(archive) as packed:
        for inside, target in download.members:
            if (folder / target).exists():
                continue
            try:
                source = (
                    packed.open(inside) if isinstance(packed, zipfile.ZipFile) else packed.extractfile(inside)
                )
            except KeyError:
                source = None
            if source is None:
                advice = "The archive is not what its publisher describes; report it."
                raise DownloadError(f"{archive.name} holds no {inside}.", advice)
            with source, written_whole(folder / target) as file:
                shutil.copyfileobj(source, file)
