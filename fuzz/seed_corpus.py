"""Writes small valid files into corpus/, so that the fuzzer starts behind the magic and the header."""

import json
import struct
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"


def text(value):
    return struct.pack("<Q", len(value)) + value


def array(kind, elements):
    return struct.pack("<IQ", kind, len(elements)) + b"".join(elements)


def gguf():
    entries = [
        text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama"),
        text(b"general.alignment") + struct.pack("<II", 4, 32),
        text(b"tokens") + struct.pack("<I", 9) + array(8, [text(b"a"), text("é".encode())]),
        text(b"nested") + struct.pack("<I", 9) + array(9, [array(0, [b"\1", b"\2"])]),
        text(b"flag") + struct.pack("<IB", 7, 1),
        text(b"number") + struct.pack("<Id", 12, 0.5),
    ]
    tensors = [
        text(b"token_embd.weight") + struct.pack("<IQQIQ", 2, 32, 1, 2, 0),
        text(b"blk.0.attn_q.weight") + struct.pack("<IQIQ", 1, 8, 0, 32),
    ]
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries))
    header += b"".join(entries + tensors)
    return header + bytes(-len(header) % 32) + bytes(64)


def safetensors():
    header = {
        "__metadata__": {"format": "mlx"},
        "a.weight": {"dtype": "U32", "shape": [1, 4], "data_offsets": [0, 16]},
        "a.scales": {"dtype": "F16", "shape": [1, 1], "data_offsets": [16, 18]},
    }
    data = json.dumps(header).encode()
    return struct.pack("<Q", len(data)) + data + bytes(18)


def tokenizer_json():
    control = {"id": 3, "content": "<s>", "special": True, "normalized": False}
    control |= dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
    model = {"type": "Unigram", "unk_id": 0, "byte_fallback": False}
    model["vocab"] = [["<unk>", 0.0], ["▁a", -1.0], ["b", -2.0]]
    spaces = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    parts = {"normalizer": {"type": "NFKC"}, "pre_tokenizer": spaces, "decoder": spaces}
    return json.dumps({"version": "1.0", "added_tokens": [control], **parts, "model": model}).encode()


SEEDS = {
    "gguf": gguf(),
    "safetensors_header": safetensors(),
    "tokenizer_json": tokenizer_json(),
}
IMAGES = Path(__file__).resolve().parent.parent / "crates/akunu-image/tests/fixtures/files"
for target, seed in SEEDS.items():
    (CORPUS / target).mkdir(parents=True, exist_ok=True)
    (CORPUS / target / "seed").write_bytes(seed)
(CORPUS / "image").mkdir(parents=True, exist_ok=True)
for file in IMAGES.iterdir():
    (CORPUS / "image" / file.name).write_bytes(file.read_bytes())
