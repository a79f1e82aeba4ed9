"""The package against a real, small model."""

import asyncio
import gc
import multiprocessing
import pickle
import subprocess
import sys
import time

from pathlib import Path

import akunu
import pytest

SMOLLM2 = Path(__file__).parents[2] / "target/assets/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def test_the_same_seed_gives_the_same_text(model):
    def draw(seed):
        return model.generate("Once", max_tokens=12, temperature=2.0, seed=seed).read()

    assert draw(1) == draw(1) != draw(2)


def test_tokens_go_there_and_back(model):
    text = "Hello, wörld <|im_end|>"
    ids = model.encode(text)
    assert model.decode(ids) == text
    assert len(ids) > 5, "no control token was read"


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


def test_one_reply_at_a_time(model):
    chat = model.chat(temperature=0, max_tokens=1000)
    reply = chat.ask("Count from one to a thousand.")
    next(reply)
    with pytest.raises(akunu.Error, match="under way"):
        chat.ask("And now?")
    del reply
    gc.collect()
    assert chat.ask("Hello").read(), "the conversation is back"


def test_a_loop_can_be_left_and_the_next_question_asked(model):
    """Breaks when a reply whose loop was left keeps the conversation, even for a moment."""
    chat = model.chat(temperature=0, max_tokens=200)
    for _ in range(10):
        for piece in chat.ask("Count from one to a thousand."):
            assert piece
            break
        assert chat.messages[-1]["role"] == "assistant"
        reply = chat.ask("Count from one to a thousand.")
        next(reply)
        reply.cancel()
        assert reply.read() == reply.text and reply.stop == "cancelled"
        chat.reset()


def test_a_reply_is_cancelled_while_nobody_reads_it(model):
    chat = model.chat(temperature=0, max_tokens=1000)
    for _ in range(10):
        reply = chat.ask("Count from one to a thousand.")
        first = next(reply)
        reply.cancel()
        begin = time.monotonic()
        assert chat.messages == [
            {"role": "user", "content": "Count from one to a thousand."},
            {"role": "assistant", "content": first.strip()},
        ]
        assert time.monotonic() - begin < 5
        chat.reset()


def test_a_reply_that_has_ended_cancels_no_later_one(model):
    chat = model.chat(temperature=0, max_tokens=24)
    reply = chat.ask("What is the capital of France?")
    reply.read()
    reply, _ = chat.ask("And of Italy?"), gc.collect()
    assert "Rome" in reply.read()
    assert reply.stop == "end"


def test_asking_does_not_wait_for_a_cancelled_reply(model):
    """Breaks when the event loop stands still until the thread of the cancelled reply has ended."""
    chat = model.chat(temperature=0, max_tokens=4)
    asking, ending = 0.0, 0.0

    async def interrupt():
        nonlocal asking, ending
        reply = chat.ask("Tell me of this: " + "one two three " * 300)
        await asyncio.sleep(0.05)
        reply.cancel()
        begin = time.monotonic()
        following = chat.ask("Hello")
        asking += time.monotonic() - begin
        assert "".join([piece async for piece in reply]) == ""
        ending += time.monotonic() - begin
        assert "".join([piece async for piece in following])

    for _ in range(5):
        chat.reset()
        asyncio.run(interrupt())
        assert [message["content"] for message in chat.messages][::2] == ["Hello"]
    assert asking < ending / 2, (asking, ending)


def test_cancelled_replies_end_in_their_order(model):
    """Breaks when a reply that waited for another takes its place, or a cancelled one is answered."""
    chat = model.chat(temperature=0, max_tokens=24)
    cancelled = [chat.ask("Count from one to a thousand.")]
    for _ in range(5):
        cancelled[-1].cancel()
        cancelled.append(chat.ask("Count from one to a thousand."))
    with pytest.raises(akunu.Busy):
        chat.ask("And now?")
    cancelled[-1].cancel()
    assert "Paris" in chat.ask("What is the capital of France?").read()
    assert [reply.read() for reply in cancelled] == [""] * 6
    assert len(chat.messages) == 2


def test_conversations_survive_timeouts(model):
    """Breaks when one of them is stuck, or has lost its conversation."""
    chats = [model.chat(temperature=0, max_tokens=12, context=256) for _ in range(25)]

    async def impatient(chat, seconds):
        reply = chat.ask("Count from one to a hundred.")

        async def listen():
            return [piece async for piece in reply]

        try:
            await asyncio.wait_for(listen(), seconds)
        except asyncio.TimeoutError:
            return False
        return True

    async def all_of_them():
        return await asyncio.gather(*(impatient(chat, 0.01 + 0.03 * n) for n, chat in enumerate(chats)))

    done = asyncio.run(asyncio.wait_for(all_of_them(), 120))
    assert not all(done)
    for chat in chats:
        assert chat.ask("Hello").read()


def answer_in_child(model, text, queue):
    queue.put(model.generate(text, max_tokens=6).read())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks safely")
@pytest.mark.parametrize("threads", [2, 4])
def test_a_forked_child_can_use_the_model(threads):
    """Breaks when the child waits for threads that only the parent has."""
    model = akunu.Model(SMOLLM2, device="cpu", threads=threads)
    text = "The capital of France is"
    wanted = model.generate(text, max_tokens=6).read()
    reply = model.chat(temperature=0, max_tokens=1000).ask("Count from one to a thousand.")
    next(reply)
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    children = [fork.Process(target=answer_in_child, args=(model, text, queue)) for _ in range(2)]
    for child in children:
        child.start()
    try:
        assert [queue.get(timeout=60) for _ in children] == [wanted, wanted]
    finally:
        for child in children:
            child.join(10)
            child.kill()
    assert reply.read() and reply.stop != "cancelled"


def test_models_have_names(model):
    """Nothing is downloaded: the tests' model lies where `fetch` looks for it."""
    path = akunu.fetch("smollm2", SMOLLM2.parents[1])
    assert path.samefile(SMOLLM2)
    with pytest.raises(akunu.Error, match="smollm2"):
        akunu.fetch("smollm3")


WORKER = """
import pickle, sys
model = pickle.load(sys.stdin.buffer)
print(model.chat(temperature=0, max_tokens=24).ask("What is the capital of France?").read())
"""


def test_a_pickled_model_is_opened_by_the_worker(model):
    """As Ray, Daft and multiprocessing send it: the worker starts afresh and gets the pickle."""
    again = pickle.loads(pickle.dumps(model))
    assert again is not model and again.device == model.device
    worker = [sys.executable, "-c", WORKER]
    said = subprocess.run(worker, input=pickle.dumps(model), capture_output=True, timeout=120, check=True)
    assert b"Paris" in said.stdout
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(model.chat())


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
