import errno
import hashlib
import io
import os
import re
import socket
import tarfile
import threading
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from listenwell.corpora import CORPORA
from listenwell.corpora.download import Download, fetch
from listenwell.errors import CorpusError, DownloadError, InputError

from .helpers import NAMES

CONTENT = bytes(range(256)) * 40


@dataclass
class Server:
    """What a publisher's server offers, how it fails, and what it was asked."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    chunked: bool = False
    break_after: int | None = None
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    def offer(self, name: str, content: bytes, **more: object) -> Download:
        self.files[f"/{name}"] = content
        return Download(f"{self.address}/{name}", hashlib.sha256(content).hexdigest(), **more)


def handler_for(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            wanted = self.headers.get("Range")
            server.asked.append((self.path, wanted))
            content = server.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and server.ranges else 0
            if start and start >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            self.send_header(
                *(
                    ("Transfer-Encoding", "chunked")
                    if server.chunked
                    else ("Content-Length", str(len(content) - start))
                )
            )
            self.send_header("Connection", "close")
            self.end_headers()
            body = content[start:][: server.break_after]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(body), body) if server.chunked else body)
            if server.chunked and server.break_after is None:
                self.wfile.write(b"0\r\n\r\n")
            self.close_connection = True

        def log_message(self, *_):
            pass

    return Handler


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    state = Server()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler_for(state)) as http:
        state.address = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        http.shutdown()
        thread.join()


def visible(folder):
    return sorted(
        str(file.relative_to(folder)) for file in folder.rglob("*") if file.name[0] != "." and file.is_file()
    )


def hidden(folder):
    return sorted(file.name for file in folder.glob(".*"))


def tar_of(members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as bundle:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            bundle.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def zip_of(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return buffer.getvalue()


def test_a_plain_file_arrives_under_its_own_name(server, tmp_path):
    folder = tmp_path / "new" / "corpus"
    assert fetch(server.offer("a.csv", CONTENT), folder) == [folder / "a.csv"]
    assert (folder / "a.csv").read_bytes() == CONTENT
    assert (visible(folder), hidden(folder)) == (["a.csv"], [])


def test_a_plain_file_arrives_where_its_target_says(server, tmp_path):
    fetch(server.offer("a.csv", CONTENT, target="deep/b.csv"), tmp_path)
    assert (tmp_path / "deep" / "b.csv").read_bytes() == CONTENT
    assert (visible(tmp_path), hidden(tmp_path)) == (["deep/b.csv"], [])


def test_an_answer_without_a_length_is_taken_too(server, tmp_path):
    server.chunked = True
    fetch(server.offer("a.csv", CONTENT), tmp_path)
    assert (tmp_path / "a.csv").read_bytes() == CONTENT


@pytest.mark.parametrize(("name", "pack"), [("a.tar.gz", tar_of), ("a.zip", zip_of)])
def test_only_the_named_members_of_an_archive_are_unpacked(server, tmp_path, name, pack):
    archive = pack(
        {"in/one.csv": CONTENT, "in/two.csv": b"two", "../outside.csv": b"no", "in/rest.csv": b"no"}
    )
    members = (("in/one.csv", "one.csv"), ("in/two.csv", "deep/2.csv"))
    targets = fetch(server.offer(name, archive, members=members), tmp_path)
    assert targets == [tmp_path / "one.csv", tmp_path / "deep" / "2.csv"]
    assert [target.read_bytes() for target in targets] == [CONTENT, b"two"]
    assert (visible(tmp_path), hidden(tmp_path)) == (["deep/2.csv", "one.csv"], [])


@pytest.mark.parametrize(("name", "pack"), [("a.tar.gz", tar_of), ("a.zip", zip_of)])
def test_an_archive_without_a_named_member_is_an_error(server, tmp_path, name, pack):
    download = server.offer(name, pack({"in/one.csv": b"1"}), members=(("in/three.csv", "three.csv"),))
    with pytest.raises(DownloadError, match=r"holds no in/three\.csv"):
        fetch(download, tmp_path)
    assert visible(tmp_path) == []


@pytest.mark.parametrize(("name", "pack"), [("a.tar.gz", tar_of), ("a.zip", zip_of)])
def test_a_member_that_is_already_there_is_left_alone(server, tmp_path, name, pack):
    members = (("one.csv", "one.csv"), ("two.csv", "two.csv"))
    (tmp_path / "one.csv").write_bytes(b"mine")
    fetch(server.offer(name, pack({"one.csv": b"1", "two.csv": b"2"}), members=members), tmp_path)
    assert [(tmp_path / target).read_bytes() for _, target in members] == [b"mine", b"2"]


def test_a_download_goes_on_where_it_broke_off(server, tmp_path):
    download = server.offer("a.csv", CONTENT)
    server.break_after = 1000
    with pytest.raises(
        DownloadError, match=f"broke off after 1000 of {len(CONTENT)} bytes.*same command again"
    ):
        fetch(download, tmp_path)
    assert visible(tmp_path) == []
    server.break_after = None
    fetch(download, tmp_path)
    assert server.asked == [("/a.csv", None), ("/a.csv", "bytes=1000-")]
    assert (tmp_path / "a.csv").read_bytes() == CONTENT
    assert hidden(tmp_path) == []


def test_it_may_break_off_again_and_again(server, tmp_path):
    download = server.offer("a.csv", CONTENT)
    server.break_after = 4000
    for _ in range(2):
        with pytest.raises(DownloadError, match="broke off"):
            fetch(download, tmp_path)
    fetch(download, tmp_path)
    assert [wanted for _, wanted in server.asked] == [None, "bytes=4000-", "bytes=8000-"]
    assert (tmp_path / "a.csv").read_bytes() == CONTENT


def test_a_server_that_cannot_go_on_sends_all_of_it_again(server, tmp_path):
    download = server.offer("a.csv", CONTENT)
    server.ranges = False
    server.break_after = 1000
    with pytest.raises(DownloadError, match="broke off"):
        fetch(download, tmp_path)
    server.break_after = None
    fetch(download, tmp_path)
    assert server.asked[1] == ("/a.csv", "bytes=1000-")
    assert (tmp_path / "a.csv").read_bytes() == CONTENT


def test_a_chunked_answer_that_breaks_off_is_our_own_error(server, tmp_path):
    download = server.offer("a.csv", CONTENT)
    server.chunked, server.break_after = True, 1000
    with pytest.raises(DownloadError):
        fetch(download, tmp_path)
    assert visible(tmp_path) == []


def test_all_of_it_set_aside_is_not_asked_for_again(server, tmp_path):
    download = server.offer("a.csv", CONTENT)
    (tmp_path / f".a.csv.{download.sha256[:12]}.part").write_bytes(CONTENT)
    fetch(download, tmp_path)
    assert server.asked == [("/a.csv", f"bytes={len(CONTENT)}-")]
    assert (tmp_path / "a.csv").read_bytes() == CONTENT


def test_a_wrong_sum_keeps_what_arrived_aside_and_says_where(server, tmp_path):
    download = server.offer("a.csv", CONTENT)
    server.files["/a.csv"] = b"changed by the publisher"
    found = hashlib.sha256(b"changed by the publisher").hexdigest()
    with pytest.raises(DownloadError) as caught:
        fetch(download, tmp_path)
    assert f"sum {found}, not the pinned {download.sha256}" in caught.value.problem
    assert "Nothing was deleted" in caught.value.advice
    (aside,) = tmp_path.iterdir()
    assert str(aside) in caught.value.advice
    assert aside.read_bytes() == b"changed by the publisher"
    assert visible(tmp_path) == []


def test_after_a_wrong_sum_the_next_try_begins_anew(server, tmp_path):
    download = server.offer("a.csv", CONTENT)
    server.files["/a.csv"] = b"odd"
    with pytest.raises(DownloadError):
        fetch(download, tmp_path)
    server.files["/a.csv"] = CONTENT
    fetch(download, tmp_path)
    assert server.asked[-1] == ("/a.csv", None)
    assert (tmp_path / "a.csv").read_bytes() == CONTENT
    assert len(hidden(tmp_path)) == 1


def test_an_address_that_is_gone_is_an_error_that_names_it(server, tmp_path):
    download = Download(f"{server.address}/gone.csv", "0" * 64)
    with pytest.raises(DownloadError, match=r"/gone\.csv answered 404 Not Found.*--path"):
        fetch(download, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_already_there_is_not_asked_for(server, tmp_path):
    download = server.offer("a.csv", CONTENT)
    (tmp_path / "a.csv").write_bytes(b"mine")
    assert fetch(download, tmp_path) == [tmp_path / "a.csv"]
    assert server.asked == []
    assert (tmp_path / "a.csv").read_bytes() == b"mine"


def test_a_server_that_cannot_be_reached_is_an_error_that_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/a.csv"
        with pytest.raises(DownloadError, match=r"cannot be reached: .*refused.*run the same command again"):
            fetch(Download(url, "0" * 64), tmp_path)


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH_9.6\r\n"])
def test_a_server_that_does_not_speak_http_is_our_own_error(tmp_path, monkeypatch, answer):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/a.csv"
        with pytest.raises(DownloadError):
            fetch(Download(url, "0" * 64), tmp_path)
        thread.join()


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.ENOSPC, "disk is full"), (errno.EACCES, "folder you may write to"), (errno.EROFS, "read-only")],
)
def test_a_disk_that_takes_nothing_is_an_error_that_says_why(server, tmp_path, monkeypatch, number, advice):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(InputError, match=advice):
        fetch(server.offer("a.csv", CONTENT), tmp_path / "corpus")
    assert server.asked == []


@pytest.mark.parametrize("name", NAMES)
def test_every_corpus_has_pinned_downloads_or_says_how_to_get_it(name):
    reader = CORPORA.load(name)
    assert bool(reader.downloads) != bool(reader.obtain)
    for download in reader.downloads:
        assert download.url.startswith("https://")
        assert re.fullmatch(r"[0-9a-f]{64}", download.sha256)


@pytest.mark.parametrize("name", NAMES)
def test_no_two_downloads_of_a_corpus_share_a_target_or_leave_its_folder(name):
    targets = [target for download in CORPORA.load(name).downloads for target in download.targets()]
    assert len(set(targets)) == len(targets)
    assert not [target for target in targets if target.startswith("/") or ".." in target]


@pytest.mark.parametrize("name", NAMES)
def test_after_the_download_no_split_asks_for_the_download_again(tmp_path, name):
    reader = CORPORA.load(name)(tmp_path)
    for download in reader.downloads:
        for target in download.targets():
            (tmp_path / target).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / target).touch()
    asking = []
    for split in reader.splits:
        try:
            reader.check(split)
        except CorpusError as error:
            asking += [split] * ("corpus download" in error.advice)
    assert asking == []


@pytest.mark.parametrize("name", [name for name in NAMES if CORPORA.load(name).downloads])
def test_a_download_brings_whole_splits(tmp_path, name):
    reader = CORPORA.load(name)(tmp_path)
    for download in reader.downloads:
        for target in download.targets():
            (tmp_path / target).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / target).touch()
    assert {"valid", "test"} <= set(reader.available())
