"""Language models on your own machine."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Optional, TypedDict, Union

from . import _akunu
from ._akunu import __version__
from .errors import (
    Busy,
    ContextFull,
    DeviceError,
    DownloadError,
    Error,
    InvalidArgument,
    ModelNotFound,
    OutOfMemory,
    UnsupportedModel,
)

if TYPE_CHECKING:
    import numpy
    import numpy.typing

__all__ = [
    "Busy",
    "Chat",
    "ContextFull",
    "DeviceError",
    "DownloadError",
    "Embedder",
    "Error",
    "InvalidArgument",
    "Message",
    "Model",
    "ModelNotFound",
    "OutOfMemory",
    "Reply",
    "Reranker",
    "Segment",
    "Token",
    "Transcriber",
    "Transcription",
    "UnsupportedModel",
    "Word",
    "__version__",
    "cache_folder",
    "fetch",
]

Stop = Literal["end", "stop", "length", "loop", "grammar", "context", "cancelled", "error"]
Lora = Union[str, "os.PathLike[str]", Iterable[tuple[Union[str, "os.PathLike[str]"], float]]]


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


def _texts(texts: Union[str, Iterable[str]]) -> list[str]:
    """One text, or several, as a list."""
    return [texts] if isinstance(texts, str) else list(texts)


def _form(json_schema: Union[str, Mapping[str, Any], bool, None]) -> Optional[str]:
    """A JSON schema as text."""
    return json_schema if json_schema is None or isinstance(json_schema, str) else json.dumps(json_schema)


def _adapters(lora: Optional[Lora]) -> list[tuple[str, float]]:
    """One adapter, or several with their scales."""
    if lora is None:
        return []
    if isinstance(lora, (str, os.PathLike)):
        return [(os.fspath(lora), 1.0)]
    return [(os.fspath(path), scale) for path, scale in lora]


def _native(model: object) -> object:
    """The native part of a model; anything else as it is, for the native part to refuse."""
    return model._native if isinstance(model, Model) else model


def fetch(name: str, folder: Union[str, os.PathLike[str], None] = None) -> Path:
    """Downloads a model, unless it is there already, and returns its path.

    ``name`` is a name of the catalogue (``smollm2``, for example; the error for a wrong one lists them), or
    ``hf:owner/repository/file.gguf`` for a file of Hugging Face. The default folder is :func:`cache_folder`.
    """
    return Path(_akunu.fetch(name, os.fspath(cache_folder() if folder is None else folder)))


class _Opened:
    """Something opened from a file. A pickle holds its path and options; unpickling opens the file again."""

    _path: str
    _options: dict[str, Any]

    def __reduce__(self) -> tuple[Any, ...]:
        return _open, (type(self), self._path, self._options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._path!r})"


def _open(kind: Callable[..., _Opened], path: str, options: dict[str, Any]) -> _Opened:
    """What a pickle calls."""
    return kind(path, **options)


class Message(TypedDict):
    """A message: ``{"role": "user", "content": "Hello"}``."""

    role: str
    content: str


@dataclass(frozen=True)
class Token:
    """A token of a reply: ``logprob`` is the natural logarithm of its probability, ``top`` has the most likely ids and theirs."""

    id: int
    text: str
    logprob: float
    top: tuple[tuple[int, float], ...]


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
        """Why it ended; ``None`` before its end.

        ``end``: the model ended it. ``stop``: a stop text. ``length``: ``max_tokens``. ``loop``: it only repeated itself.
        ``grammar``: it has the wanted form, and nothing may follow. ``context``: the context is full.
        """
        return self._native.stop

    @property
    def tokens(self) -> tuple[Token, ...]:
        """Its tokens, after its end, if ``logprobs`` asked how likely they were."""
        return tuple(Token(id, text, logprob, tuple(top)) for id, text, logprob, top in self._native.tokens)


class Chat:
    """A conversation, which remembers its messages. :meth:`Model.chat` starts one."""

    def __init__(self, native: _akunu.Chat) -> None:
        self._native = native

    def ask(self, question: str) -> Reply:
        """Asks a question. The conversation keeps the pieces that are taken from the reply as the answer.

        One reply at a time: asking while another is read is an :class:`Error`. After a reply that was cancelled, or whose loop
        was left, this returns at once, and the first piece comes when that one has ended: after a few tenths of a second at most.
        """
        return Reply(self._native.ask(question))

    def answer(self) -> Reply:
        """Answers the messages so far, which :meth:`say` has added, for example."""
        return Reply(self._native.answer())

    def regenerate(self) -> Reply:
        """Removes the last answer and answers again, with another seed. If that fails, the answer stays."""
        return Reply(self._native.regenerate())

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Saves the messages as JSON, and in a second file, ``path`` with ``.session`` added, their keys and values."""
        self._native.save(os.fspath(path))

    def restore(self, path: Union[str, os.PathLike[str]]) -> None:
        """Replaces the conversation by a saved one, which goes on without being read again. The options stay, but the system
        prompt is that of the file."""
        self._native.restore(os.fspath(path))

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


class Model(_Opened):
    """A model on a device, from a GGUF file or a folder with ``config.json`` and safetensors.

    ``device`` is ``auto``, ``cpu``, ``metal``, ``cuda``, ``cuda:1`` for the second GPU, or ``twin``. ``threads`` are those of the
    CPU device. ``kv`` is how keys and values are stored: ``f16``, or ``q8`` in 53 % of the memory.

    A model can be pickled: the process that unpickles it opens the file again, with the same options.
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
        self._path = os.path.abspath(path)
        self._options = {"device": device, "threads": threads, "kv": kv}

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
        stop: Union[str, Iterable[str]] = (),
        context: Optional[int] = None,
        max_tokens: Optional[int] = None,
        temperature: Optional[float] = None,
        top_k: Optional[int] = None,
        top_p: Optional[float] = None,
        min_p: Optional[float] = None,
        repetition_penalty: Optional[float] = None,
        seed: Optional[int] = None,
        json_schema: Union[str, Mapping[str, Any], bool, None] = None,
        grammar: Optional[str] = None,
        regex: Optional[str] = None,
        logprobs: Optional[int] = None,
        lora: Optional[Lora] = None,
        draft: Optional[Model] = None,
        **sampling: float,
    ) -> Chat:
        """Starts a conversation. Options that are not given are those that the model's file suggests, with a new seed.

        ``stop`` is a text that ends a reply and is not part of it, or several. ``json_schema``, ``grammar`` (GBNF or Lark) or
        ``regex`` is the form that replies must have. ``logprobs`` asks how likely their tokens were, and for so many of the best
        ones (:attr:`Reply.tokens`). ``lora`` is the file of an adapter, or several as pairs of file and scale. ``draft`` is a smaller
        model with the same vocabulary whose guesses make replies faster and do not change them.

        ``sampling`` are rarer options: ``penalty_window``, ``frequency_penalty``, ``presence_penalty``, ``dry_multiplier``,
        ``dry_base``, ``dry_allowed_length``, ``dry_window``, ``top_n_sigma``, ``typical_p``, ``xtc_probability``,
        ``xtc_threshold``, ``dynamic_range``, ``dynamic_exponent``, ``mirostat_tau`` and ``mirostat_eta``.
        """
        native = self._native.chat(
            system=system,
            stop=_texts(stop),
            context=context,
            max_tokens=max_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            seed=seed,
            json_schema=_form(json_schema),
            grammar=grammar,
            regex=regex,
            logprobs=logprobs,
            lora=_adapters(lora),
            draft=_native(draft),
            **sampling,
        )
        return Chat(native)

    def generate(
        self,
        prompt: str,
        *,
        stop: Union[str, Iterable[str]] = (),
        context: Optional[int] = None,
        max_tokens: Optional[int] = None,
        temperature: Optional[float] = None,
        top_k: Optional[int] = None,
        top_p: Optional[float] = None,
        min_p: Optional[float] = None,
        repetition_penalty: Optional[float] = None,
        seed: Optional[int] = None,
        json_schema: Union[str, Mapping[str, Any], bool, None] = None,
        grammar: Optional[str] = None,
        regex: Optional[str] = None,
        logprobs: Optional[int] = None,
        lora: Optional[Lora] = None,
        draft: Optional[Model] = None,
        **sampling: float,
    ) -> Reply:
        """Continues a text. Without options it always takes the best token, until the model ends the text.

        ``stop``, ``json_schema``, ``grammar``, ``regex``, ``logprobs``, ``lora`` and ``draft`` are as in :meth:`chat`.

        ``sampling`` are rarer options, as in :meth:`chat`.
        """
        native = self._native.generate(
            prompt,
            stop=_texts(stop),
            context=context,
            max_tokens=max_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            seed=seed,
            json_schema=_form(json_schema),
            grammar=grammar,
            regex=regex,
            logprobs=logprobs,
            lora=_adapters(lora),
            draft=_native(draft),
            **sampling,
        )
        return Reply(native)

    def generate_all(self, prompts: Iterable[str], **options: Any) -> list[str]:
        """Continues many texts, several of them in every step, which is faster than one after the other.

        ``options`` are those of :meth:`generate`, without ``lora``.
        """
        if "lora" in options:
            raise TypeError("generate_all() takes no 'lora'")
        options["stop"] = _texts(options.get("stop") or ())
        options["json_schema"] = _form(options.get("json_schema"))
        options["draft"] = _native(options.get("draft"))
        return [text for text, _ in self._native.generate_all(list(prompts), **options)]


class Reranker(_Opened):
    """A model that scores how well documents answer a question: a cross-encoder, such as ms-marco-MiniLM-L6-v2."""

    def __init__(
        self,
        path: Union[str, os.PathLike[str]],
        *,
        device: str = "auto",
        threads: Optional[int] = None,
    ) -> None:
        self._native = _akunu.Reranker(os.fspath(path), device, threads)
        self._path = os.path.abspath(path)
        self._options = {"device": device, "threads": threads}

    def scores(self, question: str, documents: Iterable[str], *, strict: bool = False) -> list[float]:
        """The score of each document: any number, larger is better. A document that is too long is cut; with ``strict`` it is an
        :class:`Error`."""
        if isinstance(documents, str):
            raise TypeError("documents is a str; for one document, write [document]")
        return self._native.scores(question, list(documents), strict)


class Embedder(_Opened):
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
        self._path = os.path.abspath(path)
        self._options = {"device": device, "threads": threads}

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


class Transcriber(_Opened):
    """A Whisper model, from a folder of CTranslate2 or Hugging Face."""

    def __init__(
        self,
        path: Union[str, os.PathLike[str]],
        *,
        device: str = "auto",
        threads: Optional[int] = None,
    ) -> None:
        self._native = _akunu.Transcriber(os.fspath(path), device, threads)
        self._path = os.path.abspath(path)
        self._options = {"device": device, "threads": threads}

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
