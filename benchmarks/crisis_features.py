"""Which features tell messages at risk from look-alikes: the crisis classifier's, SmolLM2's, or both.

    python benchmarks/crisis_features.py

SmolLM2-135M-Instruct as it is reads each message with the turns before it; a logistic regression on the
mean and the last hidden state of a layer predicts the level. Both: a logistic regression on the
log-probabilities of the two, fitted on validation. Needs torch and scikit-learn, and the corpora of the data
folder.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from transformers import AutoModel

from listenwell.annotators.views import View, encode_views, recent_view
from listenwell.corpora.risk import LEVEL, EverydayMessages, RiskMessages
from listenwell.files import written_whole
from listenwell.labels import RISK_LEVELS
from listenwell.results.store import environment
from listenwell.runtime.text import Vocabulary
from listenwell.runtime.weights import find_weights
from listenwell.safety.classifier import CrisisClassifier
from listenwell.safety.measure import LOOKALIKE

OUT = Path(__file__).parent / "results" / "crisis_features.json"
LAYERS = (8, 16, 24, 30)
LIMIT = 128
"""Tokens of a message with the turns before it."""
REGULARIZATION = 0.003
"""scikit-learn's C of the regression on hidden states of deviation 1."""
Rows = list[tuple[View, int, bool]]
"""View, number of the level, whether it is a look-alike."""


def rows(folder: Path, split: str, everyday: bool, limit: int | None, seed: int) -> Rows:
    """Labelled messages of a split, drawn at random where there are more than `limit`."""
    loader = EverydayMessages(folder) if everyday else RiskMessages(folder)
    levels, messages = list(RISK_LEVELS), Rows()
    for dialogue in loader.read(split):
        for number, turn in enumerate(dialogue.turns):
            if level := turn.note(LEVEL):
                view = recent_view(dialogue.turns[: number + 1], dialogue.listener)
                lookalike = (turn.note("form") or "").startswith(LOOKALIKE)
                messages.append((view, levels.index(level), lookalike))
    order = np.random.default_rng(seed).permutation(len(messages))[:limit]
    return [messages[index] for index in order]


@torch.inference_mode()  # type: ignore[untyped-decorator]
def hidden_states(model: Any, vocabulary: Vocabulary, views: Sequence[View]) -> np.ndarray:  # noqa: ANN401
    """Mean and last hidden state of each of LAYERS: (views, layers, 2 · width)."""
    inputs = encode_views(vocabulary, views, LIMIT)
    order = sorted(range(len(inputs)), key=lambda index: len(inputs[index]))
    states = np.zeros((len(inputs), len(LAYERS), 2 * model.config.hidden_size), np.float16)
    for start in range(0, len(order), 48):
        batch = order[start : start + 48]
        length = max(len(inputs[index]) for index in batch)
        tokens, mask = torch.zeros(len(batch), length, dtype=torch.long), torch.zeros(len(batch), length)
        for row, index in enumerate(batch):
            own = inputs[index].tokens
            tokens[row, : len(own)] = torch.from_numpy(own.astype(np.int64))
            mask[row, : len(own)] = 1
        layers = model(tokens, output_hidden_states=True).hidden_states  # causal: padding is never seen
        last = mask.sum(1).long() - 1
        for number, layer in enumerate(LAYERS):
            state = layers[layer].float()
            mean = (state * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            both = torch.cat([mean, state[torch.arange(len(batch)), last]], dim=1)
            states[batch, number] = both.half().numpy()
    return states


def figures(probabilities: np.ndarray, part: Rows) -> dict[str, float]:
    """AUC of crises against look-alikes, and recall where 5 % of the look-alikes are an alarm."""
    levels, lookalikes = np.array([row[1] for row in part]), np.array([row[2] for row in part])
    crises = levels == 2
    threshold = np.quantile(probabilities[lookalikes], 0.95)
    both = crises | lookalikes
    return {
        "AUC": round(float(roc_auc_score(crises[both], probabilities[both])), 3),
        "recall at 5 % false alarms (%)": round(100 * float((probabilities[crises] >= threshold).mean()), 1),
    }


def main() -> None:
    """Fit, measure on the test split, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data/risk"))
    parser.add_argument("--limit", type=int, default=9000, help="training messages at risk; a third everyday")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    train = rows(options.data, "train", False, options.limit, 0)
    train += rows(options.data, "train", True, options.limit // 3, 1)
    parts = {"train": train} | {
        split: rows(options.data, split, False, None, 0) for split in ("valid", "test")
    }
    folder = find_weights("smollm2-135m-instruct")
    model = AutoModel.from_pretrained(folder, dtype=torch.float32, local_files_only=True).eval()
    vocabulary = Vocabulary.from_folder(folder)
    states = {
        name: hidden_states(model, vocabulary, [row[0] for row in part]) for name, part in parts.items()
    }
    classifier = CrisisClassifier.load()
    ours = {name: classifier.probabilities([row[0] for row in parts[name]])[0] for name in ("valid", "test")}
    table = {"crisis classifier": figures(ours["test"][:, 2], parts["test"])}
    levels = {name: np.array([row[1] for row in part]) for name, part in parts.items()}
    for number, layer in enumerate(LAYERS):
        own = {name: values[:, number].astype(np.float32) for name, values in states.items()}
        scaler = StandardScaler().fit(own["train"])
        probe = LogisticRegression(C=REGULARIZATION, max_iter=200)
        probe.fit(scaler.transform(own["train"]), levels["train"])
        probed = {name: probe.predict_proba(scaler.transform(own[name])) for name in ("valid", "test")}
        joined = {
            name: np.log(np.clip(np.concatenate([ours[name], probed[name]], axis=1), 1e-6, 1))
            for name in ("valid", "test")
        }
        mixer = LogisticRegression(max_iter=500).fit(joined["valid"], levels["valid"])
        table[f"SmolLM2, layer {layer}"] = figures(probed["test"][:, 2], parts["test"])
        both = mixer.predict_proba(joined["test"])[:, 2]
        table[f"both, layer {layer}"] = figures(both, parts["test"])
    result = {"test": table, "training messages": len(train), "limit of tokens": LIMIT, **environment()}
    with written_whole(options.out) as out:
        out.write((json.dumps(result, indent=1) + "\n").encode())
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
