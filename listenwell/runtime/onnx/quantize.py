"""Weights in 8 bits: the numbers of a block, 32 of a row or fewer, share a scale and a zero.

Codes are the nearest ones. The search for better scales that onnxruntime calls k_quant takes far longer and
comes no closer to the model in full precision; what helps is `smooth.py`.
"""

import numpy as np

BITS, BLOCK = 8, 32
_MOST = 2**BITS - 1
_ROWS = 4096
"""Worked on at once: a vocabulary's table would need three times its own memory."""


def quantized(weight: np.ndarray, block: int = BLOCK) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A matrix (outputs, width) as onnxruntime's MatMulNBits wants it: w ≈ scale (code − zero).

    Returns codes (outputs, blocks, block) uint8, scales (outputs, blocks) float32, zeros the same uint8.
    """
    rows, blocks = len(weight), -(-weight.shape[1] // block)
    codes = np.empty((rows, blocks, block), np.uint8)
    scales, zeros = np.empty((rows, blocks), np.float32), np.empty((rows, blocks), np.uint8)
    for top in range(0, rows, _ROWS):
        part = slice(top, top + _ROWS)
        codes[part], scales[part], zeros[part] = _coded(weight[part], block)
    return codes, scales, zeros


def _coded(weight: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, width = weight.shape
    blocks = np.pad(weight, ((0, 0), (0, -width % block))).reshape(rows, -1, block)
    # Zero is always in the range, so that its code is a whole number from 0 to 255.
    low = np.minimum(blocks.min(axis=2), 0)
    scales = (np.maximum(blocks.max(axis=2), 0) - low) / np.float32(_MOST)
    scales[scales == 0] = 1
    zeros = np.round(-low / scales)
    blocks /= scales[:, :, None]
    blocks += zeros[:, :, None]
    return np.clip(np.round(blocks, out=blocks), 0, _MOST, out=blocks), scales, zeros
