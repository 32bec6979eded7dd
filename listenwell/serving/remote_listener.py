"""A listener around a generator behind an OpenAI-compatible endpoint."""

from listenwell.generators.remote import Remote
from listenwell.listener import Listener


def remote_listener(generate: Remote, country: str | None = None) -> Listener:
    """A listener with a remote generator and the shipped annotator, reranker and guard."""
    from listenwell.annotators.annotator import Annotator
    from listenwell.annotators.replies import REPLY_HEADS
    from listenwell.reranking.reranker import Reranker
    from listenwell.safety.guard import Guard

    annotator = Annotator.load(heads=("emotion", *REPLY_HEADS))
    return Listener(
        generate,
        understand=annotator,
        plan=generate,
        rerank=Reranker.load(annotator=annotator),
        guard=Guard.load(country),
    )
