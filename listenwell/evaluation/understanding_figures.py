"""The figure of the annotators: each question's accuracy, ours beside the papers'."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass
