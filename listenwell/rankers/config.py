"""What a ranker is made of; read from recipes, written beside the weights. Imports no torch."""

from dataclasses import dataclass, field

from listenwell.errors import InputError, unknown_name
from listenwell.rankers import RANKERS
from listenwell.recipe import check_one_of
from listenwell.serialization import Record, also_read_as

KIND = "ranker"
"""The kind of its checkpoints."""
PRECISION = "fp32"
"""Of rankers on onnxruntime. Replies that score nearly alike change places when weights are rounded: in int8
the first of 100 is another one more often than 1 time in 100, and little time is saved
(benchmarks/results/onnx_parity.json)."""
BACKBONES = ("pretrained", "transformer", "words")
POOLINGS = ("max", "mean", "both")
HOPS = (0, 1, 2, 3)
PARTS = ("hop 0", "max", "mean", "hop 2", "hop 3")
"""What can stand in CoBERT's concatenations: hop 1 pooled in two ways, and the other hops."""
LAYERS, HEADS, WIDTH, INNER = 4, 6, 300, 1200
"""EmpatheticDialogues' retrieval Transformer (§4.2), the backbone `transformer`."""


@dataclass(frozen=True)
class BiSettings(Record):
    """Bi-encoder (Humeau et al. 2020)."""

    cosine: bool = False
    """Compare directions only, with a learned scale; the papers take the plain product."""


@dataclass(frozen=True)
class PolySettings(Record):
    """Poly-encoder (Humeau et al. 2020)."""

    codes: int = 64
    """Learned vectors that each look at the context in their own way."""

    def __post_init__(self) -> None:
        _at_least("poly.codes", self.codes, 1)


@dataclass(frozen=True)
class CobertSettings(Record):
    """CoBERT (PEC §4.3 to §4.5) and its ablations (PEC §5.5)."""

    hops: tuple[int, ...] = (1, 2)
    """Which orders of co-attention are used; 0, ours, is the cosine of the texts' means, a bi-encoder's."""
    pooling: str = "max"
    """How hop 1's attended words become a vector: max, mean, or both one after the other."""
    weighted: bool = False
    """Ours: a learned weight for each part of the concatenation (maxima and means differ in size by far), and
    a learned sharpness of the attention, which begins at 1/√d as in a Transformer."""
    vectors: float = 0.0
    """A bi-encoder's share of the loss, on the same states; above 0 it also gives vectors for large pools."""
    among: int = 0
    """With vectors: co-attention chooses among so many replies of a batch at a time, which is where its work
    is, while vectors choose among all; a last one that would be alone joins those before. 0 lets both choose
    among all."""
    alike: bool = False
    """With among: those that stand together are alike, by their vectors; otherwise they are drawn."""
    joint: bool = field(default=False, metadata=also_read_as("together"))
    """Of hop 0: compare the reply with the average of context and persona, as the bi-encoder does, which
    leaves it to the encoder how much of a persona counts; otherwise with each of them, and add both up."""

    def __post_init__(self) -> None:
        if self.alike and not self.among:
            raise InputError("cobert.alike needs cobert.among.", "Say among how many, or leave alike out.")
        if self.among and (self.among < 2 or not self.vectors):
            raise InputError(
                f"cobert.among is {self.among}.", "Give 2 or more, together with cobert.vectors."
            )
        if self.joint and 0 not in self.hops:
            raise InputError("cobert.joint is of hop 0.", "Add 0 to cobert.hops, or leave joint out.")
        if not self.hops or not set(self.hops) <= set(HOPS):
            raise InputError(f"cobert.hops is {list(self.hops)}.", "Give some of 0, 1, 2 and 3.")
        check_one_of("cobert.pooling", self.pooling, POOLINGS)
        if not 0 <= self.vectors < 1:
            raise InputError(f"cobert.vectors is {self.vectors}.", "Give a share from 0 to below 1.")


@dataclass(frozen=True)
class RecurrentSettings(Record):
    """Rankers with LSTMs: HLSTM (Lowe et al. 2015) and DIM (Gu et al. 2019)."""

    width: int = 150
    """Of an LSTM's state, in each direction."""

    def __post_init__(self) -> None:
        _at_least("recurrent.width", self.width, 1)


@dataclass(frozen=True)
class DamSettings(Record):
    """DAM (Zhou et al. 2018): attention in layers, and convolutions over the matching images."""

    layers: int = 2
    """Attentive modules on top of the states; each adds a pair of images."""
    filters: tuple[int, int] = (32, 16)
    """Of the two convolutions."""

    def __post_init__(self) -> None:
        _at_least("dam.layers", self.layers, 0)
        _at_least("dam.filters", min(self.filters), 1)


@dataclass(frozen=True)
class RankerConfig(Record):
    """A ranker and what it reads."""

    model: str = "cobert"
    """One of `rankers.RANKERS`."""
    base: str = "all-minilm-l6-v2"
    """The encoder, a name of `weights.BASE_MODELS`; its tokenizer is used whatever the backbone."""
    backbone: str = field(default="pretrained", metadata=also_read_as("body"))
    """How words become states: the pretrained encoder, a Transformer from scratch, or word vectors alone."""
    turns: int = 6
    """The newest turns of the context that are read (PEC §5.2)."""
    persona: int = 10
    """Persona sentences at most (PEC §5.2); 0 reads none."""
    context_tokens: int = 128
    persona_tokens: int = 128
    reply_tokens: int = 64
    prepend: str = ""
    """Put a classifier's first label before context and reply (EmpatheticDialogues §4.3's Prepend-1):
    `shipped` is the emotion classifier that comes with the package, anything else a checkpoint's folder."""
    bi: BiSettings = field(default_factory=BiSettings)
    poly: PolySettings = field(default_factory=PolySettings)
    cobert: CobertSettings = field(default_factory=CobertSettings)
    recurrent: RecurrentSettings = field(default_factory=RecurrentSettings)
    dam: DamSettings = field(default_factory=DamSettings)

    def __post_init__(self) -> None:
        if self.model not in RANKERS:
            raise unknown_name("ranker", self.model, RANKERS)
        if self.backbone not in BACKBONES:
            raise unknown_name("ranker.backbone", self.backbone, BACKBONES)
        _at_least("ranker.turns", self.turns, 1)
        _at_least("ranker.persona", self.persona, 0)
        for name in ("context_tokens", "persona_tokens", "reply_tokens"):
            _at_least(f"ranker.{name}", getattr(self, name), 8)

    def check_room(self, positions: int, joint: bool = False) -> None:
        """Raise an error if an encoder reads fewer tokens than each text has, or if joint all together."""
        lengths = (self.persona_tokens, self.context_tokens, self.reply_tokens)
        if (longest := sum(lengths) if joint else max(lengths)) > positions:
            raise InputError(
                f"The ranker reads texts of {longest} tokens, but its encoder {positions} at most.",
                "Lower ranker.context_tokens, persona_tokens or reply_tokens.",
            )


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise InputError(f"{name} is {value}.", f"Give {least} or more.")
