"""Names to classes, loaded only when asked for: listing what there is imports none of it."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Generic, TypeVar

from listenwell.errors import unknown_name

T = TypeVar("T")


class Registry(Generic[T]):
    """A table of `name -> "module:attribute"`.

    Args:
        kind: what an entry is called in messages, such as "corpus".
        entries: where each name's class or function is; checked only when it is loaded.
        aliases: names of earlier releases that are still understood, and what they are called now.
    """

    def __init__(
        self, kind: str, entries: Mapping[str, str], aliases: Mapping[str, str] | None = None
    ) -> None:
        self.kind = kind
        self._entries, self._aliases = dict(entries), dict(aliases or {})

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._aliases

    def load(self, name: str) -> T:
        """Import and return the entry; a wrong name is an error that holds the near ones."""
        name = self._aliases.get(name, name)
        if name not in self._entries:
            raise unknown_name(self.kind, name, self._entries)
        module, _, attribute = self._entries[name].partition(":")
        return getattr(import_module(module), attribute)  # type: ignore[no-any-return]
