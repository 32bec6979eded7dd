"""Result files: what a run measured, with which settings, and how to load them as a table."""

from listenwell.results.store import load

__all__ = ["load"]
