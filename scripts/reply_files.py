"""The files of listenwell that one reply passes through: `python scripts/reply_files.py [TEXT]`."""

import sys
from pathlib import Path
from types import FrameType

import listenwell
from listenwell import Listener

PACKAGE = Path(listenwell.__file__).parent


def main(text: str) -> None:
    """Reply once with the default listener, and print the files in the order of first entry."""
    listener, entered = Listener.from_pretrained(), dict[str, None]()

    def record(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            entered[frame.f_code.co_filename] = None

    sys.setprofile(record)
    listener.reply(text, seed=7)
    sys.setprofile(None)
    for name in entered:
        print(Path(name).relative_to(PACKAGE))
    print(f"{len(entered)} files")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "I lost my job today.")
