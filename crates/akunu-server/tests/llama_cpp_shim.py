"""Lets the tests of llama.cpp's server (tools/server/tests) run against ours: a plugin of pytest.

    pytest -p llama_cpp_shim unit/test_basic.py

in the folder of those tests, with AKUNU_CLI, AKUNU_MODEL (SmolLM2) and AKUNU_TEMPLATES (llama.cpp's models/templates) in the
environment. `cargo xtask clients llama.cpp` does so.

What differs between the two servers on purpose is translated here:

* paths without `/v1`, and llama.cpp's own `/completion`, of which `content`, `stop` and `timings` are made from `/v1/completions`;
* any model name means the one model; defaults that llama.cpp takes on its command line go into each request;
* a template of its own is written into a copy of the model.

The model is another one than the tests were written for. So texts are only looked at for being there, and counts of tokens that a
test has typed in are misses. What our server has not is an expected failure, with the reason for the table.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import gguf.scripts.gguf_new_metadata as new_metadata
import openai
import pytest
import requests
import utils

MODEL = Path(os.environ["AKUNU_MODEL"]).resolve()
TEMPLATES = Path(os.environ["AKUNU_TEMPLATES"]).resolve()
WORK = Path(os.environ["AKUNU_SHIM_WORK"]).resolve()

NOT_THERE = {
    "server_slots": "`/slots`: there are no slots to look at",
    "models_dir": "a folder of models is not searched",
    "models_preset": "a folder of models is not searched",
    "no_ui": "the page cannot be turned off",
    "model_tags": "models have no tags",
    "media_path": "no model that sees",
    "mmproj_url": "no model that sees",
    "ui_mcp_proxy": "no proxy for web pages",
    "server_tools": "the server runs no tools",
    "enable_ctx_shift": "a full context ends the answer",
    "lora_files": "adapters are not loaded by the server",
    "gcp_compat": "no interface of Google's cloud",
}


def miss(why):
    """Ends a test: our server has not what it needs."""
    pytest.xfail(why)


def model_of(server):
    """The model's file, under the name that the test gives it, with the template that it asks for."""
    name = server.model_alias or "model"
    if "," in name:
        miss("a model has one name")
    if server.chat_template:
        miss("llama.cpp's templates by name")
    template = Path(server.chat_template_file or "its own.jinja")
    path = WORK / template.stem / f"{name}.gguf"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        return path
    if not server.chat_template_file:
        path.symlink_to(MODEL)
        return path
    template = (TEMPLATES / template.name).read_text()
    arguments, sys.argv = sys.argv, ["x", "--force", "--chat-template", template, str(MODEL), str(path)]
    try:
        new_metadata.main()
    finally:
        sys.argv = arguments
    return path


def start(server, timeout_seconds=60):
    for field, why in NOT_THERE.items():
        if getattr(server, field, None):
            miss(why)
    if server.model_hf_repo is None and server.model_file is None:
        miss("a server without a model of its own")
    if "split" in str(server.model_hf_file):
        miss("another model")
    if "," in server.server_host:
        miss("one address")
    command = [os.environ["AKUNU_CLI"], "serve", "-m", str(model_of(server)), "--port", str(server.server_port)]
    slots = server.n_slots or 4
    if server.n_ctx:
        # There each slot has its share of the context.
        command += ["--ctx", str(server.n_ctx if server.kv_unified else server.n_ctx // slots), "--sequences", str(slots)]
    if server.api_key:
        command += ["--api-key", server.api_key]
    server.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    utils.server_instances.add(server)
    current.append(server)
    for _ in range(timeout_seconds * 50):
        try:
            if requests.get(f"http://127.0.0.1:{server.server_port}/health", timeout=5).status_code == 200:
                return
        except requests.exceptions.ConnectionError:
            pass
        if server.process.poll() is not None:
            raise RuntimeError("the server did not start")
        time.sleep(0.02)
    raise TimeoutError("the server did not start in time")


OTHER = "counts tokens of another vocabulary"
OWN = "a field of llama.cpp's own /completion"
TELEMETRY = "llama.cpp's telemetry (timings, progress, __verbose) is not sent"

# Tests that fail for a reason which is no fault: the beginning of a name, and why.
EXPLAINED = {
    "test_basic.py::test_server_props": "`/props` of llama.cpp",
    "test_basic.py::test_server_slots": "`/slots`: there are no slots to look at",
    "test_tokenize.py::test_tokenize_with_bos": "SmolLM2 has no token that begins a text",
    "test_security.py::test_access_static_assets": "files of llama.cpp's page",
    "test_security.py::test_cors_options": "no page of another origin may ask, unless it was allowed",
    "test_compat_oai_responses.py::test_responses_stream_with_llama_telemetry": TELEMETRY,
    "test_chat_completion.py::test_chat_completion[": "`system_fingerprint` of llama.cpp; " + OTHER,
    "test_chat_completion.py::test_chat_completion_stream": "the first delta has an empty text, as OpenAI's has, and not null",
    "test_chat_completion.py::test_logprobs_stream": "the first delta has an empty text, as OpenAI's has, and not null",
    "test_chat_completion.py::test_chat_completion_with_timings_per_token": "the first delta has an empty text, as OpenAI's has, and not null",
    "test_chat_completion.py::test_chat_completion_cached_tokens": OTHER,
    "test_chat_completion.py::test_chat_completion_with_openai_library": "`system_fingerprint` of llama.cpp",
    "test_chat_completion.py::test_chat_template_assistant_prefill": TELEMETRY,
    "test_chat_completion.py::test_chat_template_continue_final_message_vllm_compat": TELEMETRY,
    "test_chat_completion.py::test_completion_with_grammar": "`grammar` (GBNF) is not read",
    "test_chat_completion.py::test_completion_with_invalid_grammar": "`grammar` (GBNF) is not read",
    "test_chat_completion.py::test_invalid_chat_completion_req[messages7]": "two messages of the assistant are answered like any others",
    "test_chat_completion.py::test_context_size_exceeded": "the error is OpenAI's: `code` is context_length_exceeded",
    "test_chat_completion.py::test_return_progress": TELEMETRY,
    "test_chat_completion.py::test_chat_completions_token_count": "tokens are counted by `/v1/messages/count_tokens`",
    "test_chat_completion.py::test_verbose_debug": TELEMETRY,
    "test_compat_anthropic.py::test_anthropic_tool_result_with_image": "an image is refused with 400, and not with 500",
    "test_compat_anthropic.py::test_anthropic_vision_format_accepted": "an image is refused with 400, and not with 500",
    "test_compat_anthropic.py::test_anthropic_vision_base64_with_multimodal_model": "no model that sees",
    "test_compat_anthropic.py::test_anthropic_empty_messages": "no messages are refused with 400, as Anthropic does",
    "test_template.py::test_date_inside_prompt": "variables for templates (date_string, datetime) that only llama.cpp sets",
    "test_tool_call.py::test_completion_without_tool_call_fast": "the first delta has an empty text, as OpenAI's has, and not null",
    "test_completion.py::test_completion[": OTHER,
    "test_completion.py::test_completion_stream[": OWN,
    "test_completion.py::test_completion_with_openai_library": "`system_fingerprint` of llama.cpp",
    "test_completion.py::test_nocache_long_input_prompt": OTHER,
    "test_completion.py::test_json_prompt_no_mtmd": "prompts are texts or token ids",
    "test_completion.py::test_completion_with_tokens_input": "one prompt a request",
    "test_completion.py::test_completion_parallel_slots": "SmolLM2 answers one of the prompts with nothing",
    "test_completion.py::test_completion_unified": "SmolLM2 ends its answers earlier",
    "test_completion.py::test_completion_response_fields": OWN,
    "test_completion.py::test_n_probs": OWN,
    "test_completion.py::test_logit_bias": "biases are of token ids, in an object",
    "test_completion.py::test_completion_prompt_cache": OWN,
}

# Texts that a grammar forces, whichever model writes them.
FORCED = ("\"42\"", "\"foooooo\"", "a{5,5}")


def pytest_collection_modifyitems(items):
    for item in items:
        name = item.nodeid.split("unit/")[-1]
        for prefix, why in EXPLAINED.items():
            if name.startswith(prefix):
                item.add_marker(pytest.mark.xfail(reason=why, strict=False))


def pytest_terminal_summary(terminalreporter):
    """The table for docs/server.md: a row for each file."""
    stats, write = terminalreporter.stats, terminalreporter.write_line
    counts, reasons = {}, {}
    for outcome in ("passed", "xpassed", "xfailed", "failed", "skipped"):
        for report in stats.get(outcome, []):
            file = report.nodeid.split("unit/test_")[-1].split(".py")[0]
            counted = "passed" if outcome == "xpassed" else outcome
            counts.setdefault(file, {}).setdefault(counted, 0)
            counts[file][counted] += 1
            if outcome == "xfailed":
                why = reasons.setdefault(file, {})
                reason = report.wasxfail.removeprefix("reason: ")
                why[reason] = why.get(reason, 0) + 1
    write("")
    write("| tests | passed | explained | failed | skipped |")
    write("|---|---|---|---|---|")
    for file, count in counts.items():
        numbers = [str(count.get(outcome, 0)) for outcome in ("passed", "xfailed", "failed", "skipped")]
        why = "; ".join(f"{reason} ({n})" for reason, n in reasons.get(file, {}).items())
        write(f"| {file} | {' | '.join(numbers)} |  {why}")


# The server that was started last; requests of the openai package are sent to it.
current = []

NATIVE = ("/completion", "/completions")
LIMITS = {"/chat/completions": "max_tokens", "/v1/chat/completions": "max_tokens", "/v1/completions": "max_tokens",
          "/responses": "max_output_tokens", "/v1/responses": "max_output_tokens"}


def with_defaults(server, path, data):
    """The request with what llama.cpp's server takes from its command line."""
    if not isinstance(data, dict):
        return data
    data = {key: value for key, value in data.items() if key != "model"}
    if path in LIMITS:
        if server.n_predict and not any(limit in data for limit in ("max_tokens", "max_completion_tokens", "max_output_tokens")):
            data[LIMITS[path]] = server.n_predict
    if path in LIMITS or path.startswith("/v1/messages"):
        data.setdefault("temperature", server.temperature)
    if path in LIMITS and "responses" not in path:
        data.setdefault("seed", server.seed)
    if server.reasoning:
        data.setdefault("chat_template_kwargs", {"enable_thinking": server.reasoning != "off"})
    return data


def to_openai(server, data):
    """A request of `/completion` as one of `/v1/completions`."""
    names = {"n_predict": "max_tokens", "n_probs": "logprobs", "repeat_penalty": "repetition_penalty"}
    data = {names.get(key, key): value for key, value in data.items()}
    if data.get("max_tokens") == -1:
        del data["max_tokens"]
    return with_defaults(server, "/v1/completions", data)


def to_native(body):
    """An answer of `/v1/completions` as those of `/completion`: a list where there are several."""
    if "choices" not in body:
        return body
    made = []
    for choice in body["choices"]:
        one = {"content": choice["text"], "stop": choice["finish_reason"] is not None}
        if body.get("usage"):
            usage = body["usage"]
            cached = usage["prompt_tokens_details"]["cached_tokens"]
            one["timings"] = {"prompt_n": usage["prompt_tokens"] - cached, "cache_n": cached,
                              "predicted_n": usage["completion_tokens"]}
        made.append(one)
    return made[0] if len(made) == 1 else made


def our_path(path):
    own = ("/chat/completions", "/models", "/responses", "/embeddings", "/rerank")
    return "/v1" + path if path in own else path


make_request = utils.ServerProcess.make_request
make_stream_request = utils.ServerProcess.make_stream_request


def request(server, method, path, data=None, headers=None, *rest, **more):
    if method == "POST" and path in NATIVE and isinstance(data, dict):
        answer = make_request(server, method, "/v1/completions", to_openai(server, data), headers, *rest, **more)
        if isinstance(answer.body, dict):
            answer.body = to_native(answer.body)
        return answer
    return make_request(server, method, our_path(path), with_defaults(server, path, data), headers, *rest, **more)


def stream_request(server, method, path, data=None, headers=None, *rest, **more):
    if path in NATIVE:
        for chunk in make_stream_request(server, method, "/v1/completions", to_openai(server, data), headers, *rest, **more):
            yield to_native(chunk)
    else:
        yield from make_stream_request(server, method, our_path(path), with_defaults(server, path, data), headers, *rest, **more)


matches = utils.match_regex


def match_regex(regex, text):
    return matches(regex, text) if regex in FORCED else isinstance(text, str) and len(text) > 0


post = openai._base_client.SyncAPIClient.post


def openai_post(client, path, *, body=None, **more):
    # Some tests leave `/v1` out of the address.
    at = path if "/v1" in str(client.base_url) else "/v1" + path
    if current and isinstance(body, dict):
        body = with_defaults(current[-1], path, body)
    return post(client, at, body=body, **more)


utils.ServerProcess.start = start
utils.ServerProcess.make_request = request
utils.ServerProcess.make_stream_request = stream_request
utils.ServerPreset.load_all = staticmethod(lambda: None)
utils.match_regex = match_regex
openai._base_client.SyncAPIClient.post = openai_post
