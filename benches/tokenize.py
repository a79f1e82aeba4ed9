"""The Python package tokenizers on the page and the vocabulary of the criterion bench.

Rebuilds SmolLM2's tokenizer from its GGUF file, checks that the ids are those of the fixture, and
prints megabytes a second. Run it beside `cargo bench -p akunu-benches --bench tokenize`.

    pip install gguf tokenizers
"""

import json
import time
from pathlib import Path

import gguf
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

FIXTURES = Path(__file__).parent / "../crates/akunu-tokenizer/tests/fixtures"
MODEL = Path(__file__).parent / "../target/assets/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def smollm2():
    fields = gguf.GGUFReader(MODEL).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = fields["tokenizer.ggml.merges"].contents()
    vocabulary = {token: at for at, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokenizer = Tokenizer(models.BPE(vocabulary, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\p{N}"), "isolated"),
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return tokenizer


def main():
    page = (FIXTURES / "mixed.txt").read_text(encoding="utf-8")
    expected = json.loads((FIXTURES / "tokens.json").read_text())["smollm2"]
    tokenizer = smollm2()
    assert tokenizer.encode(page).ids == expected
    text = page * 64
    times = []
    for _ in range(11):
        start = time.perf_counter()
        tokenizer.encode(text)
        times.append(time.perf_counter() - start)
    median = sorted(times)[len(times) // 2]
    print(f"{len(text.encode()) / median / 2**20:.2f} MiB/s")


if __name__ == "__main__":
    main()
