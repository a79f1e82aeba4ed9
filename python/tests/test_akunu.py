"""The package against a real, small model."""

import asyncio
import gc
import threading
import time

from pathlib import Path

import akunu
import pytest

SMOLLM2 = Path(__file__).parents[2] / "target/assets/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def test_a_conversation_remembers(model):
    """The second question makes sense only with the first."""
    chat = model.chat(temperature=0, max_tokens=24, system="Be brief.")
    pieces = list(chat.ask("What is the capital of France?"))
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


def test_a_text_goes_on_until_a_stop(model):
    reply = model.generate("The capital of France is", max_tokens=5)
    assert "Paris" in reply.read()
    assert reply.stop == "max_tokens"
    stopped = model.generate("The capital of France is", max_tokens=5, stop=["Paris"])
    assert "Paris" not in stopped.read()
    assert stopped.stop == "text"


def test_the_same_seed_gives_the_same_text(model):
    def draw(seed):
        return model.generate("Once", max_tokens=12, temperature=2.0, seed=seed).read()

    assert draw(1) == draw(1) != draw(2)


def test_tokens_go_there_and_back(model):
    text = "Hello, wörld <|im_end|>"
    ids = model.encode(text)
    assert model.decode(ids) == text
    assert len(ids) > 5, "no control token was read"


def test_streams_are_asynchronous(model):
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


def test_a_cancelled_task_ends_its_reply(model):
    chat = model.chat(temperature=0, max_tokens=1000)

    async def talk():
        reply = chat.ask("Count from one to a thousand.")
        waiting = asyncio.create_task(reply.__anext__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        async for _ in reply:
            pass
        return reply.stop

    assert asyncio.run(talk()) == "cancelled"


def test_a_reply_can_be_cancelled_before_its_first_piece(model):
    """What was not answered was not asked."""
    chat = model.chat(temperature=0)
    reply = chat.ask("Tell me of this: " + "one two three " * 600)
    reply.cancel()
    assert (reply.read(), reply.stop) == ("", "cancelled")
    assert chat.messages == []


def test_another_thread_cancels(model):
    chat = model.chat(temperature=0, max_tokens=1000)
    reply = chat.ask("Count from one to a thousand.")
    next(reply)
    thread = threading.Thread(target=reply.cancel)
    thread.start()
    thread.join()
    reply.read()
    assert reply.stop == "cancelled"
    assert chat.ask("Hello").read(), "the conversation goes on"


def test_one_reply_at_a_time(model):
    chat = model.chat(temperature=0, max_tokens=1000)
    reply = chat.ask("Count from one to a thousand.")
    next(reply)
    with pytest.raises(akunu.Error, match="under way"):
        chat.ask("And now?")
    del reply
    gc.collect()
    # The thread gives the conversation back as soon as it sees that nobody listens.
    for _ in range(600):
        try:
            return chat.ask("Hello").cancel()
        except akunu.Error:
            time.sleep(0.1)
    pytest.fail("a reply that nobody holds goes on")


def test_models_have_names(model):
    """Nothing is downloaded: the tests' model lies where `fetch` looks for it."""
    path = akunu.fetch("smollm2", SMOLLM2.parents[1])
    assert path.samefile(SMOLLM2)
    with pytest.raises(akunu.Error, match="smollm2"):
        akunu.fetch("smollm3")


def test_mistakes_are_errors(model):
    with pytest.raises(akunu.Error, match="nowhere.gguf"):
        akunu.Model("nowhere.gguf")
    with pytest.raises(akunu.Error, match="toaster"):
        akunu.Model("nowhere.gguf", device="toaster")
    with pytest.raises(ValueError, match="kv"):
        akunu.Model("nowhere.gguf", kv="q4")
    with pytest.raises(TypeError, match="devise"):
        akunu.Model("nowhere.gguf", devise="cpu")
    with pytest.raises(akunu.Error):
        model.chat(context=0)
    with pytest.raises(ValueError, match="top_k is -1, which must be a whole number"):
        model.generate("Hello", top_k=-1)
    with pytest.raises(ValueError, match="mirostat_eta is 2"):
        model.chat(mirostat_eta=2)
    with pytest.raises(TypeError, match="heat"):
        model.chat(heat=1)
