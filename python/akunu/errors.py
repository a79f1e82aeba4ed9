"""The errors of this package: subclasses of :class:`Error`, so that a program can tell them apart."""

from __future__ import annotations

__all__ = [
    "Busy",
    "ContextFull",
    "DeviceError",
    "DownloadError",
    "Error",
    "InvalidArgument",
    "ModelNotFound",
    "OutOfMemory",
    "UnsupportedModel",
]


class Error(Exception):
    """A model cannot be opened, or an answer cannot be given; the text says why."""


class ModelNotFound(Error, FileNotFoundError):
    """A model, a recording or another file does not exist."""


class UnsupportedModel(Error):
    """A file is not a model that can be run: it is damaged, or of a kind that is not supported."""


class ContextFull(Error):
    """A text is longer than the context or the model allows."""


class OutOfMemory(Error, MemoryError):
    """There is not enough memory: a smaller model or context is needed."""


class DeviceError(Error):
    """The device is not there, or failed."""


class DownloadError(Error):
    """A model cannot be downloaded."""


class InvalidArgument(Error, ValueError):
    """A value that is not possible."""


class Busy(Error):
    """Another reply of the conversation, or another transcription, is still under way."""
