"""Writes tables.rs: the points of ggml's grids, as the package `gguf` has them.

    pip install gguf==0.19.0 numpy
    python make_tables.py

A point is four or eight levels, numbers 0, 1, 2 and so on that stand for the format's magnitudes. They are packed into 16 bits,
the first in the lowest ones: 3 bits each where there are four, 2 bits where there are eight.
"""

import os

import numpy as np
from gguf import quants

GRIDS = [
    ("IQ1", quants.IQ1_S, "iq1_s and iq1_m"),
    ("IQ2_XXS", quants.IQ2_XXS, "iq2_xxs"),
    ("IQ2_XS", quants.IQ2_XS, "iq2_xs"),
    ("IQ2_S", quants.IQ2_S, "iq2_s"),
    ("IQ3_XXS", quants.IQ3_XXS, "iq3_xxs"),
    ("IQ3_S", quants.IQ3_S, "iq3_s"),
]


def points(grid):
    """The points as 16-bit numbers."""
    grid.init_grid()
    magnitudes = [float(number) for number in grid.grid_map]
    bits = 3 if grid.grid_shape[1] == 4 else 2
    numbers = np.asarray(grid.grid, dtype=np.float32).reshape(grid.grid_shape)
    for point in numbers:
        levels = [magnitudes.index(float(number)) for number in point]
        yield sum(level << (bits * place) for place, level in enumerate(levels))


def main():
    text = "//! The points of the grids. Written by `make_tables.py`.\n"
    for name, grid, formats in GRIDS:
        numbers = [f"{point:#06x}," for point in points(grid)]
        text += f"\n/// The grid of {formats}.\npub static {name}: [u16; {len(numbers)}] = [\n"
        for at in range(0, len(numbers), 16):
            text += "    " + " ".join(numbers[at:at + 16]) + "\n"
        text += "];\n"
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tables.rs"), "w") as out:
        out.write(text)


main()
