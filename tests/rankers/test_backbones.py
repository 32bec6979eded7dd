import pytest
import torch

from listenwell.errors import WeightsError
from listenwell.rankers.base import Words
from listenwell.rankers.config import RankerConfig
from listenwell.rankers.model import EncoderBackbone, WordBackbone, make_backbone
from listenwell.runtime.encoder import load_encoder
from tests.rankers import checks
from tests.tiny import ENCODER


@torch.no_grad()
def test_states_are_the_encoders_own_and_places_count_words_only():
    backbone = checks.bert_backbone().eval()
    rows = [[[3, 4, 5], [6, 7]], [[8]], []]
    plain = checks.texts(rows)
    found = backbone(plain)
    for row, count in enumerate((5, 1)):
        alone = backbone.encoder(
            input_ids=plain.tokens[row : row + 1, :count],
            token_type_ids=plain.types[row : row + 1, :count],
            position_ids=torch.arange(count)[None],
        ).last_hidden_state
        checks.near(found[row, :count], alone[0])
    # Padding before, between and after words moves no word and is moved by none.
    spread = checks.texts(rows, before=3, between=2, padding=17)
    checks.near(backbone(spread)[spread.mask], found[plain.mask])
    assert found.isfinite().all()  # the row without words too


@torch.no_grad()
def test_segments_and_places_count():
    backbone = checks.bert_backbone().eval()
    words = checks.texts([[[3, 4], [5, 6]]])
    other = Words(words.tokens, 1 - words.types, words.parts)
    assert (backbone(words) - backbone(other)).abs().max() > 1e-3
    turned = Words(words.tokens.flip(1), words.types.flip(1), words.parts)
    assert (backbone(words).flip(1) - backbone(turned)).abs().max() > 1e-3


@torch.no_grad()
def test_a_causal_body_sees_what_was_said_before_only(tiny_llama):
    encoder, _ = load_encoder("smollm2-135m-instruct", tiny_llama)
    backbone = EncoderBackbone(encoder).eval()
    rows = [[[3, 4, 5], [6, 7]], [[8]], []]
    found, plain = backbone(checks.texts(rows)), checks.texts(rows)
    checks.near(found[0, :5], encoder(input_ids=plain.tokens[:1, :5]).last_hidden_state[0])
    changed = backbone(checks.texts([[[3, 4, 5], [6, 9]], [[8]], []]))
    checks.near(changed[0, :4], found[0, :4])
    assert (changed[0, 4] - found[0, 4]).abs().max() > 1e-3
    spread = checks.texts(rows, before=3, between=2, padding=17)
    checks.near(backbone(spread)[spread.mask], found[plain.mask])
    assert found.isfinite().all()


@pytest.mark.usefixtures("installed_encoder")
def test_a_pretrained_body_is_the_encoder(tiny_encoder):
    backbone, folder = make_backbone(RankerConfig())
    encoder, _ = load_encoder(ENCODER, tiny_encoder)
    assert folder == tiny_encoder and backbone.width == 16
    own = backbone.encoder.state_dict()
    assert own.keys() == encoder.state_dict().keys()
    assert all(torch.equal(value, own[name]) for name, value in encoder.state_dict().items())


@pytest.mark.usefixtures("installed_encoder")
def test_a_word_backbone_begins_with_the_encoders_vectors(tiny_encoder):
    backbone, folder = make_backbone(RankerConfig(backbone="words"))
    encoder, _ = load_encoder(ENCODER, tiny_encoder)
    vectors = encoder.get_input_embeddings().weight
    assert isinstance(backbone, WordBackbone) and folder == tiny_encoder and backbone.width == 16
    assert torch.equal(backbone.vectors.weight, vectors)
    assert backbone.vectors.weight.requires_grad and sum(1 for _ in backbone.parameters()) == 1
    words = checks.texts([[[7, 9]], [[9]]])
    assert torch.equal(backbone(words)[:, :1].squeeze(1), vectors[[7, 9]])


@pytest.mark.usefixtures("installed_encoder")
def test_a_transformer_from_scratch_has_the_papers_shape(tiny_encoder):
    torch.manual_seed(1)
    backbone, folder = make_backbone(RankerConfig(backbone="transformer"), dropout=0.25)
    config = backbone.encoder.config
    assert (config.num_hidden_layers, config.num_attention_heads, config.hidden_size) == (4, 6, 300)
    assert backbone.width == 300 and folder == tiny_encoder
    assert config.vocab_size == load_encoder(ENCODER, tiny_encoder)[0].config.vocab_size
    assert {m.p for m in backbone.modules() if isinstance(m, torch.nn.Dropout)} == {0.25}
    with torch.no_grad():
        found = backbone.eval()(checks.texts([[[3, 4]], [[5]]]))
    assert found.shape == (2, 2, 300) and found.isfinite().all()
    torch.manual_seed(2)
    other, _ = make_backbone(RankerConfig(backbone="transformer"))
    weights = [one.encoder.get_input_embeddings().weight for one in (backbone, other)]
    assert not torch.equal(*weights)  # nothing of it is pretrained


def test_dropout_reaches_the_layers(tiny_encoder):
    backbone, _ = make_backbone(RankerConfig(), tiny_encoder, dropout=0.5)
    words = checks.texts([[[3, 4, 5]]])
    backbone.train()
    assert not torch.equal(backbone(words), backbone(words))
    backbone.eval()
    assert torch.equal(backbone(words), backbone(words))


def test_a_folder_without_an_encoder_is_a_clear_error(tmp_path):
    with pytest.raises(WeightsError, match=r"no .*missing|There is no"):
        make_backbone(RankerConfig(), tmp_path / "missing")
