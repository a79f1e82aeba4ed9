"""Trains a small mixture of experts, and records what `transformers` computes with it.

    python mixture.py OUT [--steps 3000] [--text FOLDER …]        (with torch, transformers and gguf; minutes on a GPU, hours without)

Mixtures with random weights have routers that choose almost evenly and logits that are almost flat. This model has the
architecture of Qwen 3 MoE (4 layers, 32 experts of which 4 are used, 55 million parameters) and reads the Python files of some
folders, by default Python's standard library. OUT gets

    model/         the folder that `transformers` saves, in bfloat16, with its tokenizer
    model.gguf     the same weights in one file, for programs that read only that
    heldout.txt    files that the model was not trained on
    figures.json   perplexity of heldout.txt, the share of results of each expert in each layer, and a text that the model writes

The perplexity is computed as by `akunu-cli perplexity -f heldout.txt`: in chunks of 512 tokens, of which the second half is scored.
"""

import argparse
import hashlib
import json
import sysconfig
import time
from pathlib import Path

import gguf
import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import ByteLevelBPETokenizer
from transformers import PreTrainedTokenizerFast, Qwen3MoeConfig, Qwen3MoeForCausalLM

VOCAB, END = 4096, "<|endoftext|>"
CONTEXT = 512
BATCH = 48
CHUNKS = 64
CONFIG = dict(
    vocab_size=VOCAB, hidden_size=512, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=2, head_dim=64,
    intermediate_size=1024, num_experts=32, num_experts_per_tok=4, moe_intermediate_size=256, norm_topk_prob=True,
    decoder_sparse_step=1, mlp_only_layers=[], max_position_embeddings=2048, rope_theta=10_000.0, rms_norm_eps=1e-6,
    tie_word_embeddings=True, router_aux_loss_coef=0.01)


def texts(folders):
    """The Python files of the folders without tests, and those of them that are held out, one in 32."""
    skipped = {"test", "tests", "site-packages", "idle_test", "lib2to3", "__pycache__"}
    kept, held_out = [], []
    for root in folders:
        for path in sorted(root.rglob("*.py")):
            name = path.relative_to(root)
            if skipped & set(name.parts):
                continue
            is_held_out = hashlib.sha256(str(name).encode()).digest()[0] < 8
            (held_out if is_held_out else kept).append(path.read_text(encoding="utf-8", errors="replace"))
    return kept, "\n".join(held_out)


def tokenizer_of(kept, folder):
    """A byte-level vocabulary with GPT-2's rules, learnt from the texts and saved."""
    learnt = ByteLevelBPETokenizer()
    learnt.train_from_iterator(kept, vocab_size=VOCAB, min_frequency=2, special_tokens=[END], show_progress=False)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=learnt._tokenizer, eos_token=END)
    tokenizer.save_pretrained(folder)
    return tokenizer


def train(model, tokens, steps):
    """AdamW with a warm-up and a cosine, on random windows."""
    fast, rate = dict(device_type=tokens.device.type, dtype=torch.bfloat16), 1.5e-3
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.1)
    begun = time.time()
    for step in range(steps):
        cosine = 0.5 * (1 + np.cos(np.pi * step / steps))
        optimiser.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / 100) * (0.05 + 0.95 * cosine)
        starts = torch.randint(len(tokens) - CONTEXT - 1, (BATCH,)).tolist()
        batch = torch.stack([tokens[at:at + CONTEXT + 1] for at in starts])
        with torch.autocast(**fast):
            out = model(input_ids=batch[:, :-1], output_router_logits=True)
            loss = F.cross_entropy(out.logits.float().flatten(0, 1), batch[:, 1:].flatten())
            loss = loss + CONFIG["router_aux_loss_coef"] * out.aux_loss
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % 100 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.3f}, {time.time() - begun:.0f} s", flush=True)


@torch.no_grad()
def scores(model, ids):
    """Logarithms of the probabilities of the tokens that `akunu-cli perplexity` scores, and the results of each expert."""
    logs, counts = [], np.zeros((CONFIG["num_hidden_layers"], CONFIG["num_experts"]), dtype=np.int64)
    for at in range(0, len(ids) - CONTEXT + 1, CONTEXT):
        chunk = torch.tensor([ids[at:at + CONTEXT]], device=model.device)
        out = model(input_ids=chunk, output_router_logits=True)
        every = F.log_softmax(out.logits[0].double(), dim=-1)
        rows = torch.arange(CONTEXT // 2, CONTEXT - 1)
        logs += every[rows, chunk[0, rows + 1].cpu()].tolist()
        for layer, router in enumerate(out.router_logits):
            chosen = router.topk(CONFIG["num_experts_per_tok"], dim=-1).indices
            counts[layer] += np.bincount(chosen.flatten().cpu(), minlength=CONFIG["num_experts"])
    return logs, counts


def write_gguf(model, tokenizer, path):
    """The file, with the names of Qwen 3 MoE."""
    writer = gguf.GGUFWriter(path, "qwen3moe")
    writer.add_name("mixture trained on Python files")
    writer.add_vocab_size(VOCAB)
    writer.add_context_length(CONFIG["max_position_embeddings"])
    writer.add_embedding_length(CONFIG["hidden_size"])
    writer.add_block_count(CONFIG["num_hidden_layers"])
    writer.add_feed_forward_length(CONFIG["intermediate_size"])
    writer.add_head_count(CONFIG["num_attention_heads"])
    writer.add_head_count_kv(CONFIG["num_key_value_heads"])
    writer.add_key_length(CONFIG["head_dim"])
    writer.add_value_length(CONFIG["head_dim"])
    writer.add_rope_freq_base(CONFIG["rope_theta"])
    writer.add_layer_norm_rms_eps(CONFIG["rms_norm_eps"])
    writer.add_expert_count(CONFIG["num_experts"])
    writer.add_expert_used_count(CONFIG["num_experts_per_tok"])
    writer.add_expert_feed_forward_length(CONFIG["moe_intermediate_size"])
    rules = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    ids = {at: token for token, at in tokenizer.get_vocab().items()}
    kinds = [gguf.TokenType.CONTROL if ids.get(at) == END else gguf.TokenType.NORMAL for at in range(VOCAB)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([ids.get(at, f"<unused{at}>") for at in range(VOCAB)])
    writer.add_token_types(kinds)
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in rules["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_add_bos_token(False)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN3MOE, CONFIG["num_hidden_layers"])
    for name, weight in model.state_dict().items():
        if name == "lm_head.weight":
            continue
        values = weight.float().cpu()
        if name.endswith(".experts.gate_up_proj"):
            stem = name.removesuffix("gate_up_proj")
            parts = zip(("gate_proj", "up_proj"), values.chunk(2, dim=1))
            parts = {f"{stem}{part}.weight": half for part, half in parts}
        else:
            parts = {name if name.endswith(".weight") else f"{name}.weight": values}
        for part, half in parts.items():
            found = names.get_name(part, try_suffixes=(".weight",))
            half = half.contiguous().numpy()
            writer.add_tensor(found, half if half.ndim == 1 or "gate_inp" in found else half.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--text", type=Path, nargs="+", default=[Path(sysconfig.get_paths()["stdlib"])])
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kept, held_out = texts(args.text)
    tokenizer = tokenizer_of(kept, args.out / "model")
    ids = tokenizer(kept)["input_ids"]
    tokens = torch.tensor([id for text in ids for id in [*text, tokenizer.eos_token_id]], device=device)
    model = Qwen3MoeForCausalLM(Qwen3MoeConfig(**CONFIG, eos_token_id=tokenizer.eos_token_id)).to(device)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} million parameters, {len(tokens)} tokens", flush=True)
    train(model, tokens, args.steps)

    # Every reader gets the same weights: bfloat16 in the folder, and the same values in the file.
    model = model.to(torch.bfloat16)
    for weight in model.parameters():
        weight.data = weight.data.to(torch.float16).to(torch.bfloat16)
    model.save_pretrained(args.out / "model")
    model = model.float().eval()
    write_gguf(model, tokenizer, args.out / "model.gguf")

    ids = tokenizer(held_out)["input_ids"][:CHUNKS * CONTEXT]
    held_out = tokenizer.decode(ids)
    (args.out / "heldout.txt").write_text(held_out, encoding="utf-8")
    ids = tokenizer(held_out)["input_ids"]
    logs, counts = scores(model, ids)
    start = tokenizer("def read_lines(path):\n", return_tensors="pt").to(device)
    written = model.generate(**start, max_new_tokens=120, do_sample=False)
    figures = dict(
        steps=args.steps, tokens=len(tokens), chunks=len(ids) // CONTEXT, scored=len(logs),
        perplexity=float(np.exp(-np.mean(logs))), shares=(counts / counts.sum(axis=1, keepdims=True)).round(4).tolist(),
        text=tokenizer.decode(written[0]))
    (args.out / "figures.json").write_text(json.dumps(figures, indent=1))
    print(f"perplexity {figures['perplexity']:.5f} over {len(logs)} tokens; most and least used expert of each layer: "
          + ", ".join(f"{max(row):.3f}/{min(row):.3f}" for row in figures["shares"]))
    print(figures["text"])


if __name__ == "__main__":
    main()
