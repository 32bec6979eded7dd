"""Rotary positions (Su et al. 2021), as plain Llamas, Llama 3.1 and Gemma 3 have them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from listenwell.errors import WeightsError

KINDS = ("default", "linear", "llama3")


@dataclass(frozen=True)
class Rope:
    """How fast each pair of a head's channels turns with the position."""

    theta: float
    kind: str = "default"
    factor: float = 1.0
    """linear divides every frequency by it, llama3 the low ones."""
    low: float = 1.0
    high: float = 4.0
    original: int = 8192
    """llama3: a wave that fits fewer than `low` times into so many positions is slowed down by the factor,
    one that fits more than `high` times is not."""

    @classmethod
    def of(cls, settings: Mapping[str, Any], theta: float) -> "Rope":
        """Read Hugging Face's rope_parameters or rope_scaling; `theta` where they have none."""
        kind = settings.get("rope_type") or settings.get("type") or "default"
        if kind not in KINDS or settings.get("partial_rotary_factor") not in (None, 1.0):
            raise WeightsError(
                f"The model's rotary positions are of the kind {kind!r}, which is not known here.",
                f"Run it with torch, or use a model with one of: {', '.join(KINDS)}.",
            )
        theta = float(settings.get("rope_theta") or theta)
        if kind == "default":
            return cls(theta)
        if kind == "linear":
            return cls(theta, kind, float(settings["factor"]))
        bounds = float(settings["low_freq_factor"]), float(settings["high_freq_factor"])
        return cls(
            theta, kind, float(settings["factor"]), *bounds, int(settings["original_max_position_embeddings"])
        )

    def frequencies(self, width: int) -> np.ndarray:
        """Radians by which each of width / 2 pairs turns from one position to the next: float32."""
        # In float32 as transformers has them: late positions' angles are large, and round differently.
        powers = np.arange(0, width, 2, dtype=np.float32) / np.float32(width)
        frequencies = (1 / np.float32(self.theta) ** powers).astype(np.float32)
        if self.kind == "default":
            return frequencies
        slow = frequencies / np.float32(self.factor)
        if self.kind == "linear":
            return slow
        fits = self.original * frequencies / np.float32(2 * np.pi)
        kept = np.clip((fits - self.low) / (self.high - self.low), 0, 1).astype(np.float32)
        mixed: np.ndarray = (1 - kept) * slow + kept * frequencies
        return mixed

    def rotations(self, positions: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Cosines and sines of every position's angles (eq. 15): (positions, width / 2) each."""
        angles = np.arange(positions, dtype=np.float32)[:, None] * self.frequencies(width)
        return np.cos(angles), np.sin(angles)
