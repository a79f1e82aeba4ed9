"""The model that the tests talk to, which `cargo xtask assets smollm2` fetches."""

from pathlib import Path

import akunu
import pytest

SMOLLM2 = Path(__file__).parents[2] / "target/assets/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def model() -> akunu.Model:
    return akunu.Model(SMOLLM2)
