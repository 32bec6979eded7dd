"""20 Newsgroups (Lang 1995) in its publisher's "bydate" form: posts of 1993 with the group each stood in.

The archive holds the folders 20news-bydate-train and 20news-bydate-test with one file a post, GROUP/NUMBER,
in Latin-1 with headers. It is read as it was downloaded, or unpacked. The publisher's training posts are
older than the test posts; there is no validation split, so ours is carved out of training.
"""

import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from listenwell.corpora.base import CorpusLoader, hash_bucket, is_number
from listenwell.corpora.download import Download
from listenwell.dialogue import LabelledText
from listenwell.errors import CorpusError
from listenwell.labels import NEWSGROUPS

ARCHIVE = "20news-bydate.tar.gz"
_FOLDERS = {"train": "20news-bydate-train", "valid": "20news-bydate-train", "test": "20news-bydate-test"}

SPLIT_RULE = (
    "of the publisher's training posts, those are valid for which the first 8 hexadecimal digits of "
    "sha256(subject), modulo 100, are below 10; the subject is in lower case and without Re:, so that no "
    "thread is on both sides, and a post without one goes by GROUP/NUMBER"
)
CLEANING_RULE = (
    "headers end at the first blank line; lines are quoted if they begin, after blanks, with |, with a colon "
    "and a blank, or with > after up to three letters; lines are attributions if they begin "
    "with In article < or end in writes:, wrote:, says: or said:; the signature begins at the last line of "
    "nothing but two dashes or more, if at most ten lines follow it"
)

_QUOTED = re.compile(r"\s*(?:[A-Za-z]{0,3}>|\||:\s)")
_ATTRIBUTION = re.compile(r"\s*in article <|.*\b(?:writes|wrote|says|said):\s*$", re.IGNORECASE)
_DASHES = re.compile(r"\s*-{2,}\s*")
_SIGNATURE_LINES = 10
_SUBJECT = re.compile(r"^subject:(.*)$", re.IGNORECASE | re.MULTILINE)
_REPLY = re.compile(r"^(?:\s*re\s*:)+", re.IGNORECASE)


def split_of(subject: str) -> str:
    """Whether a training post is train or valid by SPLIT_RULE: about 90 to 10 percent."""
    plain = " ".join(_REPLY.sub("", subject).lower().split())
    return "valid" if hash_bucket(plain) < 10 else "train"


def cleaned(body: str) -> str:
    """The words of the post itself by CLEANING_RULE; the headers are already off."""
    lines = body.rstrip().split("\n")
    dashes = [number for number, line in enumerate(lines) if _DASHES.fullmatch(line)]
    if dashes and len(lines) - 1 - dashes[-1] <= _SIGNATURE_LINES:
        lines = lines[: dashes[-1]]
    own = [line for line in lines if not _QUOTED.match(line) and not _ATTRIBUTION.match(line)]
    return "\n".join(own).strip()


class Newsgroups(CorpusLoader):
    """18,846 posts of 20 newsgroups; a post's group is its label, which stands for its topic."""

    name = "newsgroups"
    title = "20 Newsgroups: posts of 1993 by topic"
    licence = "none stated; posts to public newsgroups"
    citation = "Lang 1995"
    splits = ("train", "valid", "test")
    # Jason Rennie's own page; http://qwone.com/~jason/20Newsgroups/ is its younger address, without https.
    # The sum is the one that scikit-learn pins for its copy of the same file.
    downloads = (
        Download(
            f"https://people.csail.mit.edu/jrennie/20Newsgroups/{ARCHIVE}",
            "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
        ),
    )

    def files(self, split: str) -> tuple[Path, ...]:
        """Every post where the folder is unpacked, the archive otherwise; train and valid share theirs."""
        folder = self.path / _FOLDERS[split]
        return tuple(sorted(file for file in folder.glob("*/*") if file.is_file())) or (self.path / ARCHIVE,)

    def read(self, split: str) -> Iterator[LabelledText]:
        """Posts without headers, quotes and signature (CLEANING_RULE), by group and number."""
        for group, number, raw in self._posts(split):
            where = f"{group}/{number}"
            if b"\0" in raw:
                self.report.skip("not a text", where)
                continue
            # Latin-1 gives every other byte a letter.
            head, _, body = raw.decode("latin-1").replace("\r\n", "\n").partition("\n\n")
            subject = _SUBJECT.search(head)
            if split != "test" and split_of(subject[1] if subject else where) != split:
                continue
            if text := cleaned(body):
                yield LabelledText(text, (group,), where)
            else:
                self.report.skip("no words of its own", where)

    def _posts(self, split: str) -> Iterator[tuple[str, str, bytes]]:
        """Group, number and content, in one order whether they are packed or not."""
        files = self.check(split)
        if files == (self.path / ARCHIVE,):
            posts = self._packed(files[0], _FOLDERS[split])
        else:
            posts = {(file.parent.name, file.name): file for file in files}
        known = []
        for group, number in posts:
            if group not in NEWSGROUPS:
                self.report.skip("unknown group", f"{group}/{number}")
            elif not is_number(number):
                self.report.skip("file name is no number", f"{group}/{number}")
            else:
                known.append((group, number))
        for group, number in sorted(known, key=lambda key: (key[0], int(key[1]), key[1])):
            post = posts[group, number]
            try:
                yield group, number, post.read_bytes() if isinstance(post, Path) else post
            except OSError:
                self.report.skip("cannot be read", f"{group}/{number}")

    @staticmethod
    def _packed(archive: Path, folder: str) -> dict[tuple[str, str], Path | bytes]:
        """One folder of the archive, some 20 MB: its members stand in another order than the files."""
        posts: dict[tuple[str, str], Path | bytes] = {}
        try:
            with tarfile.open(archive, "r|gz") as packed:
                for member in packed:
                    parts = PurePosixPath(member.name).parts
                    if member.isfile() and len(parts) == 3 and parts[0] == folder:
                        content = packed.extractfile(member)
                        posts[parts[1], parts[2]] = content.read() if content else b""
        except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
            raise CorpusError(
                f"{archive} is no archive that can be read: {error}.", "Remove it and download it again."
            ) from error
        return posts
