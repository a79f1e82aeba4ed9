"""The official clients of three protocols against a running server: chat, stream, tools, errors, cancellation.

    python clients.py http://127.0.0.1:8080 talk.wav

needs the packages openai, anthropic and ollama, and a server of a model that generates text and of whisper-tiny.en; the file
is the beginning of Kennedy's speech. `cargo xtask clients` installs them, starts a server and runs this.
"""

import base64
import json
import struct
import sys
import time
import urllib.request
from typing import Literal

import anthropic
import ollama
import openai
import pydantic

BASE = sys.argv[1].rstrip("/")
SPEECH = sys.argv[2]
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
# Some versions of the anthropic package have no argument for it.
COLD = {"temperature": 0}
TOOL = {
    "name": "get_weather",
    "description": "The weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}

gpt = openai.OpenAI(base_url=f"{BASE}/v1", api_key="none", max_retries=0)
claude = anthropic.Anthropic(base_url=BASE, api_key="none", max_retries=0)
llama = ollama.Client(host=BASE)
MODEL = gpt.models.list().data[0].id


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def metric(name):
    text = urllib.request.urlopen(f"{BASE}/metrics").read().decode()
    return next(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name + "{"))


def nobody_is_left():
    for _ in range(200):
        if metric("akunu_requests_running") == 0 and metric("akunu_pages_in_use") == 0:
            return
        time.sleep(0.02)
    raise AssertionError("a sequence is left")


def openai_chat():
    answer = gpt.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0, max_tokens=24)
    expect("Paris" in answer.choices[0].message.content, answer)
    expect(answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens, answer.usage)
    expect(answer.usage.prompt_tokens_details.cached_tokens >= 0, answer.usage)
    two = gpt.chat.completions.create(model=MODEL, messages=QUESTION, n=2, max_tokens=4, seed=1)
    expect([choice.index for choice in two.choices] == [0, 1], two)


def openai_stream():
    whole = gpt.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0, max_tokens=24)
    chunks = list(gpt.chat.completions.create(
        model=MODEL, messages=QUESTION, temperature=0, max_tokens=24, stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    expect(text == whole.choices[0].message.content, text)
    expect(chunks[0].choices[0].delta.role == "assistant", chunks[0])
    expect(chunks[-1].usage.completion_tokens == whole.usage.completion_tokens and not chunks[-1].choices, chunks[-1])
    with gpt.chat.completions.stream(model=MODEL, messages=QUESTION, temperature=0, max_tokens=24) as stream:
        final = stream.get_final_completion()
    expect(final.choices[0].message.content == text, final)


def openai_completions():
    answer = gpt.completions.create(model=MODEL, prompt="1, 2, 3, 4, 5,", temperature=0, max_tokens=12, stop=[" 8"])
    expect(answer.choices[0].text == " 6, 7," and answer.choices[0].finish_reason == "stop", answer)
    pieces = gpt.completions.create(model=MODEL, prompt="1, 2, 3, 4, 5,", temperature=0, max_tokens=4, stream=True)
    expect("".join(piece.choices[0].text for piece in pieces).startswith(" 6"), "stream")


def openai_tools():
    """The whole round: tools in the prompt, a call and its result in the conversation, an answer."""
    tools = [{"type": "function", "function": TOOL}]
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
    messages = QUESTION + [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny, 24 degrees"}]
    without = gpt.chat.completions.create(model=MODEL, messages=messages, max_tokens=4)
    answer = gpt.chat.completions.create(model=MODEL, messages=messages, tools=tools, max_tokens=12)
    expect(answer.usage.prompt_tokens > without.usage.prompt_tokens + 20, "the tools are in the prompt")
    expect(answer.choices[0].finish_reason in ("stop", "length", "tool_calls"), answer)
    forced = gpt.chat.completions.create(model=MODEL, messages=QUESTION, tools=tools, tool_choice="required", max_tokens=200)
    call = forced.choices[0].message.tool_calls[0]
    expect(call.function.name == "get_weather" and "city" in json.loads(call.function.arguments), forced)
    expect(forced.choices[0].finish_reason == "tool_calls", forced)


def openai_schema():
    class City(pydantic.BaseModel):
        name: Literal["Paris", "Rome"]
        people: int
    answer = gpt.chat.completions.parse(model=MODEL, messages=QUESTION, response_format=City, max_tokens=60)
    expect(isinstance(answer.choices[0].message.parsed, City), answer)
    free = gpt.chat.completions.create(
        model=MODEL, messages=QUESTION, response_format={"type": "json_object"}, max_tokens=200, temperature=0)
    expect(free.choices[0].finish_reason == "length" or isinstance(json.loads(free.choices[0].message.content), dict), free)


def openai_embeddings():
    made = gpt.embeddings.create(model=MODEL, input=["the cat sleeps", "a cat is sleeping", "stock market"])
    one, two, three = (item.embedding for item in made.data)
    dot = lambda a, b: sum(x * y for x, y in zip(a, b))
    expect(abs(dot(one, one) - 1) < 1e-3, "length 1")
    expect(dot(one, two) > dot(one, three), "what means the same is nearer")
    raw = gpt.embeddings.with_raw_response.create(model=MODEL, input="the cat sleeps", encoding_format="base64")
    text = raw.http_response.json()["data"][0]["embedding"]
    numbers = struct.unpack(f"<{len(one)}f", base64.b64decode(text))
    expect(max(abs(x - y) for x, y in zip(numbers, one)) < 1e-5, "base64")


def openai_responses():
    answer = gpt.responses.create(model=MODEL, input="What is the capital of France?", temperature=0, max_output_tokens=40)
    expect("Paris" in answer.output_text and answer.status == "completed", answer)
    events = list(gpt.responses.create(
        model=MODEL, input="What is the capital of France?", temperature=0, max_output_tokens=40, stream=True))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    expect(text == answer.output_text and events[-1].type == "response.completed", events)
    expect([event.sequence_number for event in events] == list(range(len(events))), "numbers")


def openai_audio():
    def said(**options):
        with open(SPEECH, "rb") as file:
            return gpt.audio.transcriptions.create(model="whisper-tiny.en", file=file, **options)
    text = said().text
    expect("ask not what your country can do for you" in text, text)
    verbose = said(response_format="verbose_json", timestamp_granularities=["word", "segment"])
    expect(verbose.text == text and verbose.duration == 11.0, verbose)
    expect(verbose.segments[0].avg_logprob < 0 and verbose.words[0].word == "And", verbose)
    expect(said(response_format="srt").startswith("1\n00:00:00,"), "srt")
    events = list(said(stream=True))
    expect("".join(event.delta for event in events[:-1]) == text == events[-1].text, events)
    try:
        with open(SPEECH, "rb") as file:
            gpt.audio.translations.create(model="whisper-tiny.en", file=file)
    except openai.BadRequestError as error:
        expect("only English" in error.body["message"], error)
    else:
        raise AssertionError("a model for English alone translated")


def openai_errors():
    for error, change in [
        (openai.NotFoundError, {"model": "no-such-model"}),
        (openai.BadRequestError, {"temperature": -1}),
        (openai.BadRequestError, {"messages": []}),
        (openai.BadRequestError, {"messages": [{"role": "user", "content": "word " * 9000}]}),
    ]:
        try:
            gpt.chat.completions.create(**({"model": MODEL, "messages": QUESTION} | change))
        except error as caught:
            expect(caught.body["message"], caught)
        else:
            raise AssertionError(f"{change} was answered")


def openai_cancel():
    stream = gpt.chat.completions.create(
        model=MODEL, messages=QUESTION, stream=True, max_tokens=4000, extra_body={"ignore_eos": True})
    for _, _chunk in zip(range(3), stream):
        pass
    stream.close()
    nobody_is_left()


def anthropic_chat():
    answer = claude.messages.create(model=MODEL, messages=QUESTION, max_tokens=24, system="You are a helpful assistant.", extra_body=COLD)
    expect("Paris" in answer.content[0].text and answer.stop_reason == "end_turn", answer)
    count = claude.messages.count_tokens(model=MODEL, messages=QUESTION, system="You are a helpful assistant.")
    used = answer.usage
    expect(count.input_tokens == used.input_tokens + used.cache_read_input_tokens, (count, used))
    stopped = claude.messages.create(
        model=MODEL, messages=QUESTION, max_tokens=24, stop_sequences=["Paris"], extra_body=COLD)
    expect(stopped.stop_reason == "stop_sequence" and stopped.stop_sequence == "Paris", stopped)


def anthropic_stream():
    with claude.messages.stream(model=MODEL, messages=QUESTION, max_tokens=24, extra_body=COLD) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    expect("Paris" in text and final.content[0].text == text, final)
    expect(final.usage.output_tokens > 0 and final.stop_reason == "end_turn", final)


def anthropic_tools():
    tools = [{"name": TOOL["name"], "description": TOOL["description"], "input_schema": TOOL["parameters"]}]
    messages = QUESTION + [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Rome"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}]}]
    answer = claude.messages.create(model=MODEL, messages=messages, tools=tools, max_tokens=12)
    expect(answer.stop_reason in ("end_turn", "max_tokens", "tool_use"), answer)
    forced = claude.messages.create(model=MODEL, messages=QUESTION, tools=tools, max_tokens=200,
                                    tool_choice={"type": "tool", "name": "get_weather"})
    expect(forced.stop_reason == "tool_use" and "city" in forced.content[-1].input, forced)


def anthropic_errors():
    for error, change in [(anthropic.NotFoundError, {"model": "none"}), (anthropic.BadRequestError, {"max_tokens": 0})]:
        try:
            claude.messages.create(**({"model": MODEL, "messages": QUESTION, "max_tokens": 4} | change))
        except error as caught:
            expect(caught.body["type"] == "error", caught)
        else:
            raise AssertionError(f"{change} was answered")


def ollama_chat():
    answer = llama.chat(model=MODEL, messages=QUESTION, options={"temperature": 0, "num_predict": 24})
    expect("Paris" in answer.message.content and answer.done and answer.eval_count > 0, answer)
    pieces = list(llama.chat(model=MODEL, messages=QUESTION, options={"temperature": 0, "num_predict": 24}, stream=True))
    expect("".join(piece.message.content for piece in pieces) == answer.message.content, pieces)
    expect(pieces[-1].done and pieces[-1].done_reason == "stop", pieces[-1])


def ollama_rest():
    expect(MODEL in [model.model for model in llama.list().models], llama.list())
    expect(llama.show(MODEL).modelinfo["vocab_size"] > 0, "show")
    answer = llama.generate(model=MODEL, prompt="1, 2, 3, 4, 5,", raw=True, options={"temperature": 0, "num_predict": 4})
    expect(answer.response.startswith(" 6"), answer)
    expect(len(llama.embed(model=MODEL, input=["a", "b"]).embeddings) == 2, "embed")
    def weather(city: str) -> str:
        """The weather of a city."""
        return city
    llama.chat(model=MODEL, messages=QUESTION, tools=[weather], options={"num_predict": 4})
    try:
        llama.chat(model="none", messages=QUESTION)
    except ollama.ResponseError as error:
        expect(error.status_code == 404 and "none" in error.error, error)
    else:
        raise AssertionError("an unknown model answered")


TESTS = [openai_chat, openai_stream, openai_completions, openai_tools, openai_schema, openai_embeddings, openai_responses, openai_audio, openai_errors,
         openai_cancel, anthropic_chat, anthropic_stream, anthropic_tools, anthropic_errors, ollama_chat, ollama_rest]

failed = 0
for test in TESTS:
    began = time.monotonic()
    try:
        test()
        outcome = "ok"
    except Exception as error:  # Each test is told, whatever went wrong.
        failed += 1
        outcome = f"FAILED: {type(error).__name__}: {error}"
    print(f"{test.__name__:20} {time.monotonic() - began:5.1f} s  {outcome}", flush=True)
nobody_is_left()
print(f"openai {openai.__version__}, anthropic {anthropic.__version__}: {len(TESTS) - failed} of {len(TESTS)} passed")
sys.exit(failed > 0)
