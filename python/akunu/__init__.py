"""Language models on your own machine."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Optional, TypedDict, Union

from . import _akunu
from ._akunu import Error, __version__

if TYPE_CHECKING:
    import numpy
    import numpy.typing

__all__ = [
    "Chat",
    "Embedder",
    "Error",
    "Message",
    "Model",
    "Reply",
    "Segment",
    "Transcriber",
    "Transcription",
    "Word",
    "__version__",
    "cache_folder",
    "fetch",
]

Stop = Literal["end", "text", "max_tokens", "context_full", "cancelled", "other"]


def cache_folder() -> Path:
    """The folder for models, which ``akunu-cli`` uses too."""
    home = Path.home()
    if sys.platform == "win32":
        caches = Path(os.environ.get("LOCALAPPDATA") or home / "AppData/Local")
    elif sys.platform == "darwin":
        caches = home / "Library/Caches"
    else:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or "")
        if not caches.is_absolute():
            caches = home / ".cache"
    return caches / "akunu" / "models"


def fetch(name: str, folder: Union[str, os.PathLike[str], None] = None) -> Path:
    """Downloads a model, unless it is there already, and returns its path.

    ``name`` is a name of the catalogue (``smollm2``, for example; the error for a wrong one lists them), or
    ``hf:owner/repository/file.gguf`` for a file of Hugging Face. The default folder is :func:`cache_folder`.
    """
    return Path(_akunu.fetch(name, os.fspath(cache_folder() if folder is None else folder)))


class Message(TypedDict):
    """A message: ``{"role": "user", "content": "Hello"}``."""

    role: str
    content: str


class Reply:
    """An answer as a stream: iterate over its pieces of text with ``for`` or ``async for``."""

    def __init__(self, native: _akunu.Reply) -> None:
        self._native = native
        self._text = ""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        piece = self._native.next_piece()
        if piece is None:
            raise StopIteration
        self._text += piece
        return piece

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        loop = asyncio.get_running_loop()
        try:
            piece = await loop.run_in_executor(None, self._native.next_piece)
        except asyncio.CancelledError:
            self._native.cancel()
            raise
        if piece is None:
            raise StopAsyncIteration
        self._text += piece
        return piece

    def read(self) -> str:
        """Waits for the rest, and returns the whole text."""
        for _ in self:
            pass
        return self._text

    def cancel(self) -> None:
        """Ends the answer, from any thread."""
        self._native.cancel()

    @property
    def text(self) -> str:
        """The text so far."""
        return self._text

    @property
    def stop(self) -> Optional[Stop]:
        """Why it ended; ``None`` before its end."""
        return self._native.stop


class Chat:
    """A conversation, which remembers its messages. :meth:`Model.chat` starts one."""

    def __init__(self, native: _akunu.Chat) -> None:
        self._native = native

    def ask(self, question: str) -> Reply:
        """Asks a question. The conversation keeps the pieces that are taken from the reply as the answer."""
        return Reply(self._native.ask(question))

    def say(self, role: str, text: str) -> None:
        """Adds a message without an answer."""
        self._native.say(role, text)

    def undo(self) -> Optional[str]:
        """Removes the last question and everything after it; returns the question."""
        return self._native.undo()

    def reset(self) -> None:
        """Forgets the conversation, except for the system prompt."""
        self._native.reset()

    @property
    def messages(self) -> list[Message]:
        """All messages, including the system prompt."""
        return [Message(role=role, content=text) for role, text in self._native.messages()]


class Model:
    """A model on a device, from a GGUF file or a folder with ``config.json`` and safetensors.

    ``device`` is ``auto``, ``cpu``, ``metal``, ``cuda``, ``cuda:1`` for the second GPU, or ``twin``. ``threads`` are those of the
    CPU device. ``kv`` is how keys and values are stored: ``f16``, or ``q8`` in 53 % of the memory.
    """

    def __init__(
        self,
        path: Union[str, os.PathLike[str]],
        *,
        device: str = "auto",
        threads: Optional[int] = None,
        kv: Literal["f16", "q8"] = "f16",
    ) -> None:
        self._native = _akunu.Model(os.fspath(path), device, threads, kv)

    @property
    def device(self) -> str:
        """What the model runs on."""
        return self._native.device

    def encode(self, text: str, *, add_special: bool = False) -> list[int]:
        """The token ids of a text. Text such as ``<|im_end|>`` never becomes a control token."""
        return self._native.encode(text, add_special)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of token ids, without control tokens."""
        return self._native.decode(list(ids))

    def chat(
        self,
        *,
        system: Optional[str] = None,
        context: Optional[int] = None,
        max_tokens: Optional[int] = None,
        temperature: Optional[float] = None,
        top_k: Optional[int] = None,
        top_p: Optional[float] = None,
        min_p: Optional[float] = None,
        repetition_penalty: Optional[float] = None,
        seed: Optional[int] = None,
        **sampling: float,
    ) -> Chat:
        """Starts a conversation. Options that are not given are those that the model's file suggests, with a new seed.

        ``sampling`` are rarer options: ``penalty_window``, ``frequency_penalty``, ``presence_penalty``, ``dry_multiplier``,
        ``dry_base``, ``dry_allowed_length``, ``dry_window``, ``top_n_sigma``, ``typical_p``, ``xtc_probability``,
        ``xtc_threshold``, ``dynamic_range``, ``dynamic_exponent``, ``mirostat_tau`` and ``mirostat_eta``.
        """
        native = self._native.chat(
            system=system,
            context=context,
            max_tokens=max_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            seed=seed,
            **sampling,
        )
        return Chat(native)

    def generate(
        self,
        prompt: str,
        *,
        stop: Iterable[str] = (),
        context: Optional[int] = None,
        max_tokens: Optional[int] = None,
        temperature: Optional[float] = None,
        top_k: Optional[int] = None,
        top_p: Optional[float] = None,
        min_p: Optional[float] = None,
        repetition_penalty: Optional[float] = None,
        seed: Optional[int] = None,
        **sampling: float,
    ) -> Reply:
        """Continues a text. Without options it always takes the best token, until the model ends the text.

        ``sampling`` are rarer options, as in :meth:`chat`.
        """
        native = self._native.generate(
            prompt,
            stop=list(stop),
            context=context,
            max_tokens=max_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            seed=seed,
            **sampling,
        )
        return Reply(native)


class Embedder:
    """A model that turns texts into vectors: texts that mean similar things have a dot product near 1.

    ``path`` is a folder with ``config.json`` and safetensors, or a GGUF file, of an encoder such as all-MiniLM-L6-v2. A model
    that generates text works too, but less well.
    """

    def __init__(
        self,
        path: Union[str, os.PathLike[str]],
        *,
        device: str = "auto",
        threads: Optional[int] = None,
    ) -> None:
        self._native = _akunu.Embedder(os.fspath(path), device, threads)

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        return self._native.dimensions

    @property
    def max_tokens(self) -> int:
        """The maximum number of tokens of a text."""
        return self._native.max_tokens

    def embed(
        self,
        texts: Iterable[str],
        *,
        dimensions: Optional[int] = None,
        strict: bool = False,
    ) -> numpy.typing.NDArray[numpy.float32]:
        """The vector of each text, of length 1, as an array of ``len(texts)`` rows.

        ``dimensions`` keeps only the first numbers of each vector, for models that were trained for it. A text that is longer
        than the model can read is cut; with ``strict`` it is an :class:`Error`.
        """
        import numpy

        if isinstance(texts, str):
            raise TypeError("texts is a str; for one text, write [text]")
        data, width = self._native.embed(list(texts), dimensions, strict)
        return numpy.frombuffer(data, dtype=numpy.float32).reshape(-1, width)


@dataclass(frozen=True)
class Word:
    """A word of a recording: its times in seconds, and its text with the space before it."""

    start: float
    end: float
    text: str


@dataclass(frozen=True)
class Segment:
    """A piece of speech: its times in seconds, and its text. ``words`` is empty unless they were requested."""

    start: float
    end: float
    text: str
    words: tuple[Word, ...]
    language: Optional[str]


class Transcription:
    """The segments of a recording as a stream: iterate over them with ``for`` or ``async for``."""

    def __init__(self, native: _akunu.Transcription) -> None:
        self._native = native

    def _next(self) -> Optional[Segment]:
        told = self._native.next_segment()
        if told is None:
            return None
        start, end, text, words, language = told
        return Segment(start, end, text, tuple(Word(*word) for word in words), language)

    def __iter__(self) -> Iterator[Segment]:
        return self

    def __next__(self) -> Segment:
        segment = self._next()
        if segment is None:
            raise StopIteration
        return segment

    def __aiter__(self) -> AsyncIterator[Segment]:
        return self

    async def __anext__(self) -> Segment:
        loop = asyncio.get_running_loop()
        try:
            segment = await loop.run_in_executor(None, self._next)
        except asyncio.CancelledError:
            self._native.cancel()
            raise
        if segment is None:
            raise StopAsyncIteration
        return segment

    def cancel(self) -> None:
        """Ends it at the next segment; may be called from any thread."""
        self._native.cancel()


class Transcriber:
    """A Whisper model, from a folder of CTranslate2 or Hugging Face."""

    def __init__(
        self,
        path: Union[str, os.PathLike[str]],
        *,
        device: str = "auto",
        threads: Optional[int] = None,
    ) -> None:
        self._native = _akunu.Transcriber(os.fspath(path), device, threads)

    def transcribe(
        self,
        path: Union[str, os.PathLike[str]],
        *,
        language: Optional[str] = None,
        prompt: Optional[str] = None,
        translate: bool = False,
        words: bool = False,
        batch: int = 1,
    ) -> Transcription:
        """Transcribes an audio file: wav, flac, mp3, ogg, m4a or mp4.

        Without a ``language`` it is detected. ``prompt`` says what the recording is about, or how names in it are
        spelled; ``translate`` writes English, whatever is spoken; ``words`` adds the times of words. With a
        ``batch`` of more than one, up to 16, so many windows are decoded together: faster for long recordings, but each is
        decoded without the text before. One recording at a time: another call before this one has ended is an
        :class:`Error`.
        """
        wanted = (language, prompt, translate, words, batch)
        return Transcription(self._native.transcribe(os.fspath(path), wanted))
