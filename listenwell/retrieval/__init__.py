"""Replies that people wrote: pools, their indexes, search, and the generator that answers from one."""
