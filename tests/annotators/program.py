"""`listenwell` with the fake annotator, to be run and killed as a process of its own.

FAKE_WINDOW sets the size of windows.
"""

import os

from listenwell.annotators import stream
from listenwell.cli import main
from tests.annotators.fake import install

if __name__ == "__main__":
    stream.WINDOW = int(os.environ.get("FAKE_WINDOW", stream.WINDOW))
    install()
    main()
