"""Texts as vectors and speech as text, with real models."""

import asyncio
import pickle
import threading

import akunu
import numpy
import pytest


def test_vectors_can_be_shortened_and_long_texts_refused(embedder):
    short = embedder.embed(["a cat sleeps"], dimensions=32)
    assert short.shape == (1, 32)
    whole = embedder.embed(["a cat sleeps"])[:, :32]
    assert numpy.allclose(short, whole / numpy.linalg.norm(whole), atol=1e-5)
    assert embedder.embed([]).shape == (0, 384)
    assert embedder.embed(["long " * 300]).shape == (1, 384)
    with pytest.raises(akunu.Error, match="256"):
        embedder.embed(["long " * 300], strict=True)
    with pytest.raises(akunu.Error, match="384"):
        embedder.embed(["x"], dimensions=385)
    with pytest.raises(akunu.Error, match="text 2 is empty"):
        embedder.embed(["a", ""])


def test_other_threads_run_while_texts_are_embedded(embedder):
    """Breaks when the lock of the interpreter is held while vectors are computed."""
    n_ticks = 0
    done = threading.Event()

    def tick():
        nonlocal n_ticks
        while not done.is_set():
            n_ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    before = n_ticks
    embedder.embed(["a somewhat longer sentence about nothing in particular " * 10] * 16)
    ticked = n_ticks - before
    done.set()
    thread.join()
    assert ticked > 1000


def test_windows_can_be_decoded_together(transcriber, jfk):
    """A recording of one window is the same in a batch; a batch has 1 to 16 windows."""
    alone, batched = (list(transcriber.transcribe(jfk, batch=n)) for n in (1, 4))
    assert [segment.text for segment in batched] == [segment.text for segment in alone]
    with pytest.raises(akunu.Error, match="17 windows"):
        list(transcriber.transcribe(jfk, batch=17))


def test_segments_are_asynchronous_and_can_be_left(transcriber, jfk):
    async def first():
        async for segment in transcriber.transcribe(jfk):
            return segment

    assert "fellow Americans" in asyncio.run(first()).text
    transcription = transcriber.transcribe(jfk)
    with pytest.raises(akunu.Error, match="under way"):
        transcriber.transcribe(jfk)
    transcription.cancel()
    assert list(transcription) == []
    assert next(transcriber.transcribe(jfk)).words == ()


def test_pickles_are_opened_again(embedder, transcriber, jfk):
    """As Ray, Daft and multiprocessing send them to their workers."""
    again = pickle.loads(pickle.dumps(embedder))
    assert numpy.allclose(again.embed(["a cat sleeps"]), embedder.embed(["a cat sleeps"]), atol=1e-6)
    again = pickle.loads(pickle.dumps(transcriber))
    assert "fellow Americans" in next(again.transcribe(jfk)).text


def test_mistakes_are_errors(embedder, transcriber, jfk, tmp_path):
    with pytest.raises(akunu.Error, match="nowhere"):
        akunu.Embedder("nowhere")
    with pytest.raises(akunu.Error, match="toaster"):
        akunu.Transcriber("nowhere", device="toaster")
    with pytest.raises(TypeError, match="[[]text]"):
        embedder.embed("one text")
    notes = tmp_path / "notes.wav"
    notes.write_text("These are notes, not sounds." * 100)
    with pytest.raises(akunu.Error, match="notes.wav"):
        transcriber.transcribe(notes)
    with pytest.raises(akunu.Error, match="only English"):
        list(akunu.Transcriber(jfk.parents[1] / "whisper-tiny.en").transcribe(jfk, language="de"))
