"""Measures llama.cpp through llama-cpp-python's low-level calls, and prints one JSON object.

Usage: MODEL THREADS PROMPT_IDS STATE N_GREEDY PREFILL FIRST DECODE SHALLOW DEEP DEEP_DECODE

PROMPT_IDS is a list of ids separated by commas, continued greedily by N_GREEDY tokens. A prompt is one
batch; decoding feeds fixed tokens and chooses none, which only flatters this side. STATE is a file for
the long context: it is read where it exists, and written where not, so that only the first of several
runs has to feed those tokens.
"""

import ctypes
import json
import os
import sys
import time

import llama_cpp as llama

model_path, threads, prompt_ids, state = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
n_greedy, prefill, first, decode, shallow, deep, deep_decode = map(int, sys.argv[5:])
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


def reach(context, depth):
    """Fills an empty cache with depth tokens."""
    clear(context)
    feed(context, tokens(max(depth, 1)))


def reach_by_state(context, depth):
    """The same, by the file that an earlier run left, or else leaving it for the next."""
    no_tokens = (llama.llama_token * 0)()
    if not os.path.exists(state):
        reach(context, depth)
        if not llama.llama_state_save_file(context, state.encode(), no_tokens, 0):
            sys.exit(f"llama.cpp cannot write {state}")
        return
    clear(context)
    n_tokens = ctypes.c_size_t()
    if not llama.llama_state_load_file(context, state.encode(), no_tokens, 0, ctypes.byref(n_tokens)):
        sys.exit(f"llama.cpp cannot read {state}")
    if llama.llama_memory_seq_pos_max(llama.llama_get_memory(context), 0) != depth - 1:
        sys.exit(f"{state} does not hold {depth} tokens")


def write(context, n):
    """Tokens a second, n of them after what the cache holds."""
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
for _ in range(2):
    reach(context, 0)
    result["decode"] = write(context, decode)
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
reach(context, shallow)
result["decode_shallow"] = write(context, deep_decode)
reach_by_state(context, deep)
result["decode_deep"] = write(context, deep_decode)
print(json.dumps(result))
