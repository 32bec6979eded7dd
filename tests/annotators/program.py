"""`listenwell` with the fake annotator, in windows of four, to be run and killed as a process of its own."""

from listenwell.annotators import stream
from listenwell.cli import main
from tests.annotators.fake import install

if __name__ == "__main__":
    stream.WINDOW = 4
    install()
    main()
