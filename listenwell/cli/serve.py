"""`listenwell serve`: the chat service and its page."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from listenwell.cli.options import Base, Candidates, Plans, Pool, Recipe, Weights, Without, chosen_model
from listenwell.cli.terminal import visible
from listenwell.generators import DEFAULT

if TYPE_CHECKING:
    from listenwell.listener import Listener

Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="The generator (default: planned); repeat it to let clients select one."),
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        envvar="LISTENWELL_API_KEY", help="The key that clients must send; required for a public --host."
    ),
]
StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="LISTENWELL_STORE",
        help="Database of conversations: an SQLite file (default: in your data folder), or postgresql://…",
    ),
]
BackendKey = Annotated[
    str | None, typer.Option(envvar="LISTENWELL_BACKEND_KEY", help="With --backend openai: its API key.")
]


Host = Annotated[str, typer.Option(help="The address to listen on.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any free one.")]
NoStore = Annotated[bool, typer.Option("--no-store", help="Do not store conversations.")]
Country = Annotated[
    str | None, typer.Option(help="Country of the help lines shown in a crisis: two letters, such as NZ.")
]
Backend = Annotated[
    str, typer.Option(help="own: listenwell's models; openai: an OpenAI-compatible endpoint (Ollama, vLLM).")
]
BaseUrl = Annotated[str | None, typer.Option(help="With --backend openai: its address, including /v1.")]
Origins = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-origin", help="An origin that may call this service from a browser (CORS); repeatable."
    ),
]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--allow-host", help="A further host name of this service, such as a proxy's; repeatable."),
]
Rate = Annotated[int, typer.Option(min=0, help="Requests per minute and client; 0 for no limit.")]
Queue = Annotated[int, typer.Option(min=1, help="Capacity of the request queue.")]
Steady = Annotated[
    bool,
    typer.Option(
        "--steady",
        help="Turn load shedding off. By default, fewer candidates are generated per reply while several "
        "requests wait.",
    ),
]
MinCandidates = Annotated[
    int,
    typer.Option(
        "--min-candidates",
        "--fewest",
        min=1,
        help="Load shedding: the minimum number of candidates per reply.",
    ),
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Do not open the page in a browser.")]


def serve(
    host: Host = "127.0.0.1",
    port: Port = 8000,
    model: Models = None,
    api_key: ApiKey = None,
    store: StoreUrl = None,
    no_store: NoStore = False,
    country: Country = None,
    backend: Backend = "own",
    base_url: BaseUrl = None,
    backend_key: BackendKey = None,
    allow_origin: Origins = None,
    allow_host: Hosts = None,
    rate: Rate = 240,
    queue: Queue = 64,
    steady: Steady = False,
    min_candidates: MinCandidates = 1,
    no_browser: NoBrowser = False,
    recipe: Recipe = None,
    weights: Weights = None,
    base: Base = None,
    pool: Pool = None,
    plans: Plans = None,
    candidates: Candidates = None,
    without: Without = None,
) -> None:
    """Serve the chat page, an OpenAI-compatible API and listenwell's own.

    The port is open at once; the model loads in the background. Conversations are stored on this computer
    unless --no-store is given. The settings of a generator, such as --weights, apply to the first --model.

    Example: listenwell serve --model planned --model prompted
    """
    from listenwell.serving.app import make_app
    from listenwell.serving.logs import set_up
    from listenwell.serving.run import serve as run
    from listenwell.serving.settings import Limits, Settings, default_store

    first_name, weights = chosen_model((model or [DEFAULT])[0], weights, base)
    names, disabled = (first_name, *(model or [])[1:]), tuple(without or ())
    settings = Settings(
        host=host,
        port=port,
        models=names,
        planning=_planning(names, disabled) if backend == "own" else names,
        api_key=api_key,
        store=None if no_store else store or default_store(),
        country=country,
        origins=tuple(allow_origin or ()),
        hosts=tuple(allow_host or ()),
        min_candidates=None if steady else min_candidates,
        limits=Limits(requests_a_minute=rate, queue=queue),
    )
    if backend == "own":
        first = {"recipe": recipe, "weights": weights, "pool": pool, "plans": plans, "candidates": candidates}
        factory = _own(names[0], first, country, disabled)
    else:
        factory = _remote(backend, base_url, backend_key, plans, country)
    set_up()
    run(make_app(settings, factory), settings, lambda line: typer.echo(visible(line)), not no_browser)


def _planning(names: tuple[str, ...], disabled: tuple[str, ...]) -> tuple[str, ...]:
    """The models that plan; an unknown name is an error before anything starts."""
    from listenwell.generators import GENERATORS

    return tuple(name for name in names if GENERATORS.load(name).can_plan() and "plan" not in disabled)


def _own(
    first: str, settings: dict[str, Any], country: str | None, disabled: tuple[str, ...]
) -> "Callable[[str], Listener]":
    """A loader of listenwell's own models by name; the settings are those of the first."""

    def load(name: str) -> "Listener":
        from listenwell.listener import Listener

        own = settings if name == first else {}
        return Listener.from_pretrained(name, country=country, without=disabled, **own)

    return load


def _remote(
    backend: str, base_url: str | None, key: str | None, plans: int | None, country: str | None
) -> "Callable[[str], Listener]":
    """A loader of the models of an OpenAI-compatible endpoint; the other stages are the shipped ones."""
    from listenwell.errors import InputError, unknown_name

    if backend != "openai":
        raise unknown_name("backend", backend, ("own", "openai"))
    if base_url is None:
        raise InputError("The endpoint has no address.", "Give it with --base-url, including /v1.")

    def load(name: str) -> "Listener":
        from listenwell.annotators.annotator import Annotator
        from listenwell.annotators.heads import REPLY_HEADS
        from listenwell.generators.remote import Remote, RemoteConfig
        from listenwell.listener import Listener
        from listenwell.reranking.reranker import Reranker
        from listenwell.safety.guard import Guard

        config = RemoteConfig(base_url, name, key, **({} if plans is None else {"plans": plans}))
        generator, annotator = Remote(config), Annotator.load(heads=("emotion", *REPLY_HEADS))
        reranker = Reranker.load(annotator=annotator)
        return Listener(generator, annotator, generator, reranker, Guard.load(country))

    return load
