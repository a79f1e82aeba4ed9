"""The table of features in docs/library.md: a test for each row, called as the row.

``cargo xtask features`` runs them, and those of Rust and C, and writes the check marks.
"""

import asyncio
import json
import pickle
import threading
from pathlib import Path

import akunu
import numpy
import pytest

QUESTION = "What is the capital of France?"
BEGINNING = "The capital of France is"
LORA = Path(__file__).parents[2] / "crates/akunu/tests/fixtures/smollm2-lora.gguf"


def test_a_conversation(model):
    """The second question makes sense only with the first."""
    chat = model.chat(temperature=0, max_tokens=24, system="Be brief.")
    pieces = list(chat.ask(QUESTION))
    assert len(pieces) > 1, "it comes in pieces"
    assert "Paris" in "".join(pieces)
    reply = chat.ask("And of Italy?")
    assert "Rome" in reply.read()
    assert reply.stop == "end"
    assert [message["role"] for message in chat.messages] == ["system", "user", "assistant", "user", "assistant"]
    assert chat.messages[4]["content"] == reply.text.strip()
    assert chat.undo() == "And of Italy?"
    chat.reset()
    assert chat.messages == [{"role": "system", "content": "Be brief."}]


def test_an_answer_to_messages(model):
    chat = model.chat(temperature=0, max_tokens=24)
    for role, text in (("user", QUESTION), ("assistant", "Paris."), ("user", "And of Italy?")):
        chat.say(role, text)
    assert "Rome" in chat.answer().read()
    assert [message["role"] for message in chat.messages] == ["user", "assistant"] * 2


def test_another_answer(model):
    chat = model.chat(temperature=0, max_tokens=24)
    with pytest.raises(akunu.InvalidArgument, match="no question"):
        chat.regenerate().read()
    said = chat.ask(QUESTION).read()
    assert chat.regenerate().read() == said
    assert len(chat.messages) == 2


def test_saved_and_restored_without_reading_again(model, tmp_path):
    chat = model.chat(temperature=0, context=256, max_tokens=24, system="Be brief.")
    chat.ask(QUESTION).read()
    chat.save(tmp_path / "talk.json")
    assert (tmp_path / "talk.json.session").stat().st_size > 10_000, "what was computed is saved too"
    said = chat.messages
    wanted = chat.ask("And of Italy?").read()
    other = model.chat(temperature=0, context=256, max_tokens=24)
    other.restore(tmp_path / "talk.json")
    assert other.messages == said
    assert other.ask("And of Italy?").read() == wanted
    with pytest.raises(FileNotFoundError):
        other.restore(tmp_path / "nowhere.json")


def test_a_stream_for_asynchronous_programs(model):
    """Breaks when the event loop stands still while a piece is computed."""

    async def talk():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        pieces = [piece async for piece in model.chat(temperature=0, max_tokens=16).ask("Count to ten.")]
        ticking.cancel()
        return pieces, ticks

    pieces, ticks = asyncio.run(talk())
    assert len(pieces) > 5
    assert ticks > len(pieces)


def test_cancelling_from_another_thread(model):
    chat = model.chat(temperature=0, max_tokens=1000)
    reply = chat.ask("Count from one to a thousand.")
    next(reply)
    thread = threading.Thread(target=reply.cancel)
    thread.start()
    thread.join()
    reply.read()
    assert reply.stop == "cancelled"
    assert chat.ask("Hello").read(), "the conversation goes on"


def test_a_text_that_goes_on(model):
    assert "Paris" in model.generate(BEGINNING, max_tokens=5).read()


def test_many_texts_together(model):
    texts = [f"{n}. The capital of {name} is" for n, name in enumerate(["France", "Italy", "Japan"] * 7)]
    answers = model.generate_all(texts, max_tokens=6, context=64, stop="\n")
    assert len(answers) == len(texts)
    assert "Paris" in answers[0] and "Tokyo" in answers[2]
    assert not any("\n" in answer for answer in answers)


def test_length_of_the_context(model):
    with pytest.raises(akunu.ContextFull, match="context of 16"):
        model.generate("one two three " * 100, context=16).read()


def test_maximum_length_of_an_answer(model):
    reply = model.generate(BEGINNING, max_tokens=3, logprobs=0)
    reply.read()
    assert (reply.stop, len(reply.tokens)) == ("length", 3)


def test_texts_that_end_an_answer(model):
    for stop in ("Paris", ["nothing", "Paris"]):
        text = model.generate(BEGINNING, max_tokens=5, stop=stop)
        assert "Paris" not in text.read() and text.stop == "stop"
    reply = model.chat(temperature=0, stop="Paris").ask(QUESTION)
    assert "Paris" not in reply.read() and reply.stop == "stop"
    assert len(reply.text) > 3, "no single letter ends it"
    with pytest.raises(TypeError):
        model.chat(stop=5)


def test_json_by_a_schema(model):
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"]}
    for form in (schema, json.dumps(schema)):
        reply = model.chat(temperature=0, context=256, json_schema=form).ask(QUESTION)
        assert isinstance(json.loads(reply.read())["city"], str)
        assert reply.stop == "grammar"
    with pytest.raises(akunu.InvalidArgument, match="JSON"):
        model.chat(json_schema="{")


def test_a_grammar_gbnf_or_lark(model):
    for grammar in ('root ::= " Rome" | " Oslo"', 'start: " Rome" | " Oslo"'):
        assert model.generate(BEGINNING, grammar=grammar).read() in (" Rome", " Oslo")


def test_a_regular_expression(model):
    assert model.chat(temperature=0, regex="(yes|no)").ask("Is Paris in France?").read() in ("yes", "no")


def test_how_likely_tokens_were(model):
    for reply in (
        model.chat(temperature=0, logprobs=2).ask(QUESTION),
        model.generate(BEGINNING, max_tokens=5, logprobs=2),
    ):
        text = reply.read()
        assert "".join(token.text for token in reply.tokens).strip() in text + reply.tokens[-1].text
        for token in reply.tokens:
            assert token.top[0] == (token.id, pytest.approx(token.logprob))
            assert len(token.top) == 2 and token.logprob <= 0


def test_lora_adapters(model):
    """The adapter makes answers nonsense."""
    for lora, is_itself in ((LORA, False), ([(LORA, 0.0)], True)):
        said = model.chat(temperature=0, max_tokens=24, lora=lora).ask(QUESTION).read()
        assert ("Paris" in said) == is_itself
    for missing in ("nowhere.gguf", [("nowhere.gguf", 0.5)]):
        with pytest.raises(FileNotFoundError, match="nowhere.gguf"):
            model.chat(lora=missing)


def test_guesses_of_a_draft_model(model):
    draft = pickle.loads(pickle.dumps(model))
    plain = model.generate(BEGINNING, max_tokens=12).read()
    assert model.generate(BEGINNING, max_tokens=12, draft=draft).read() == plain
    with pytest.raises(TypeError):
        model.generate("The", draft="a model")


def test_texts_as_vectors(embedder):
    vectors = embedder.embed(["a cat sleeps", "the kitten is napping", "stock markets fell"])
    assert vectors.dtype == numpy.float32
    assert vectors.shape == (3, embedder.dimensions) == (3, 384)
    assert numpy.allclose(numpy.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    similar = vectors @ vectors.T
    assert similar[0, 1] > similar[0, 2] + 0.2
    vectors[0] *= 2  # It is the caller's own array.


def classifier(folder, embedder_folder):
    """MiniLM with a classifier of one label: zeros, and a bias of 1."""
    for name in ("config.json", "tokenizer.json"):
        (folder / name).write_bytes((embedder_folder / name).read_bytes())
    whole = (embedder_folder / "model.safetensors").read_bytes()
    n_head = int.from_bytes(whole[:8], "little")
    head, data = json.loads(whole[8 : 8 + n_head]), whole[8 + n_head :]
    for name, values in (
        ("classifier.weight", numpy.zeros((1, 384), "<f4")),
        ("classifier.bias", numpy.ones(1, "<f4")),
    ):
        ends = [len(data), len(data) + values.nbytes]
        head[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": ends}
        data += values.tobytes()
    head = json.dumps(head).encode()
    head += b" " * (-len(head) % 8)
    (folder / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + data)
    return folder


def test_documents_by_a_question(jfk, tmp_path):
    embedder_folder = jfk.parents[1] / "minilm"
    reranker = akunu.Reranker(classifier(tmp_path, embedder_folder))
    assert reranker.scores("a question", ["an answer", "another"]) == [1.0, 1.0]
    assert pickle.loads(pickle.dumps(reranker)).scores("a question", ["an answer"]) == [1.0]
    with pytest.raises(akunu.InvalidArgument, match="text 2 is empty"):
        reranker.scores("a question", ["an answer", ""])
    with pytest.raises(akunu.UnsupportedModel, match="no classifier"):
        akunu.Reranker(embedder_folder)


def test_speech_as_text(transcriber, jfk):
    segments = list(transcriber.transcribe(jfk, words=True))
    text = " ".join(segment.text for segment in segments)
    assert "ask what you can do for your country" in text
    assert segments[0].language == "en"
    assert 9 < segments[-1].end < 11.5
    words = [word for segment in segments for word in segment.words]
    assert words[0].text.strip() == "And" and words[0].end < 2
    assert all(word.start <= word.end for word in words)


def test_kinds_of_errors(model, tmp_path):
    with pytest.raises(FileNotFoundError):
        akunu.Model("nowhere.gguf")
    notes = tmp_path / "notes.gguf"
    notes.write_text("These are notes, not weights." * 100)
    with pytest.raises(akunu.UnsupportedModel, match="notes.gguf"):
        akunu.Model(notes)
    with pytest.raises(akunu.ContextFull, match="context of 16"):
        model.generate("one two three " * 100, context=16).read()
    with pytest.raises(ValueError, match="context of 0"):
        model.chat(context=0)
    with pytest.raises(MemoryError, match="memory"):
        model.chat(context=1 << 23)
    with pytest.raises(akunu.InvalidArgument, match="toaster"):
        akunu.Model("nowhere.gguf", device="toaster")
    with pytest.raises(akunu.DownloadError):
        akunu.fetch("smollm3")
    chat = model.chat(max_tokens=1000)
    reply = chat.ask("Count from one to a thousand.")
    next(reply)
    with pytest.raises(akunu.Busy):
        chat.ask("And now?")
    for kind in (akunu.Busy, akunu.ModelNotFound, akunu.OutOfMemory, akunu.InvalidArgument):
        assert issubclass(kind, akunu.Error)
