"""Measures llama.cpp through llama-cpp-python's low-level calls, and prints one JSON object.

Usage: MODEL THREADS PROMPT_IDS N_GREEDY PREFILL FIRST DECODE SHALLOW DEEP DEEP_DECODE

PROMPT_IDS is a list of ids separated by commas, continued greedily by N_GREEDY tokens. A prompt is one
batch; decoding feeds fixed tokens and chooses none, which only flatters this side.
"""

import ctypes
import json
import sys
import time

import llama_cpp as llama

model_path, threads, prompt_ids = sys.argv[1], int(sys.argv[2]), sys.argv[3]
n_greedy, prefill, first, decode, shallow, deep, deep_decode = map(int, sys.argv[4:])
prompt = [int(word) for word in prompt_ids.split(",")]
BATCH = 512


def resident_bytes():
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return 1024 * int(line.split()[1])
    return 0


def quiet(_level, _text, _data):
    pass


log = llama.llama_log_callback(quiet)
llama.llama_log_set(log, ctypes.c_void_p(0))
llama.llama_backend_init()
before = resident_bytes()


def open_context(model, n_ctx):
    params = llama.llama_context_default_params()
    params.n_ctx = n_ctx
    params.n_batch = params.n_ubatch = BATCH
    params.n_threads = params.n_threads_batch = threads
    context = llama.llama_init_from_model(model, params)
    if not context:
        sys.exit("llama.cpp cannot make a context")
    return context


def feed(context, ids):
    for start in range(0, len(ids), BATCH):
        part = ids[start : start + BATCH]
        array = (llama.llama_token * len(part))(*part)
        if llama.llama_decode(context, llama.llama_batch_get_one(array, len(part))) != 0:
            sys.exit("llama.cpp cannot decode")


def best(context):
    logits = llama.llama_get_logits_ith(context, -1)
    values = logits[:n_vocab]
    return values.index(max(values))


def clear(context):
    llama.llama_memory_clear(llama.llama_get_memory(context), True)


def timed(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


begin = time.perf_counter()
model = llama.llama_model_load_from_file(model_path.encode(), llama.llama_model_default_params())
if not model:
    sys.exit("llama.cpp cannot open the model")
context = open_context(model, max(prefill, decode + 1))
load_ms = 1e3 * (time.perf_counter() - begin)
n_vocab = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))


def tokens(n):
    return [(i * 2654435761) % (1 << 32) % n_vocab for i in range(1, n + 1)]


def read(n):
    """Seconds for a prompt of n tokens, after a run to warm up."""
    seconds = 0.0
    for _ in range(2):
        clear(context)
        ids = tokens(n)
        seconds = timed(lambda: feed(context, ids))
    return seconds


def write(context, n, depth):
    """Tokens a second, n of them after depth others."""
    clear(context)
    feed(context, tokens(max(depth, 1)))
    ids = tokens(n)

    def steps():
        for token in ids:
            feed(context, [token])

    return n / timed(steps)


result = {
    "load_ms": load_ms,
    "prefill": prefill / read(prefill),
    "first_token_ms": 1e3 * read(first),
}
write(context, decode, 0)
result["decode"] = write(context, decode, 0)
result["resident_bytes"] = resident_bytes() - before

clear(context)
feed(context, prompt)
ids = []
for _ in range(n_greedy):
    ids.append(best(context))
    feed(context, ids[-1:])
result["ids"] = ids
llama.llama_free(context)

context = open_context(model, deep + deep_decode + 1)
result["decode_shallow"] = write(context, deep_decode, shallow)
result["decode_deep"] = write(context, deep_decode, deep)
print(json.dumps(result))
