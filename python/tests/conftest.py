"""The models of the tests, which `cargo xtask assets smollm2 minilm whisper-tiny.en jfk` fetches."""

from pathlib import Path

import akunu
import pytest

ASSETS = Path(__file__).parents[2] / "target/assets"
SMOLLM2 = ASSETS / "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def model() -> akunu.Model:
    return akunu.Model(SMOLLM2)


@pytest.fixture(scope="session")
def embedder() -> akunu.Embedder:
    return akunu.Embedder(ASSETS / "minilm")


@pytest.fixture(scope="session")
def transcriber() -> akunu.Transcriber:
    return akunu.Transcriber(ASSETS / "whisper-tiny.en")


@pytest.fixture(scope="session")
def jfk() -> Path:
    return ASSETS / "jfk/jfk.wav"
