"""Entries of metadata, decoded by their dataset's codec."""

from __future__ import annotations

from typing import Any

from penstock import _native
from penstock._base.errors import CorruptionError, Error, InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data import codecs
from penstock._data.spans import Decode


def entry_decoder(native: _native.Dataset) -> Decode | None:
    """What decodes the entries of a dataset; None: it has no codec.

    Raises:
        CorruptionError: the dataset names a codec that cannot be.
    """
    try:
        codec = codecs.from_json(native.codec_json)
    except InvalidArgumentError as error:
        raise CorruptionError(f"{native.path}: its metadata codec cannot be: {error}") from None
    if codec is None:
        return None
    name, decode = codec.name, codec.decode

    def decode_entry(data: memoryview, shard: int, entry: int) -> Any:
        try:
            return decode(data)
        except Error:
            raise
        except Exception as error:  # decoders may raise anything for bytes that are not theirs
            raise CorruptionError(
                f'{native.data_path(shard)}: entry {entry:,} of {data.nbytes:,} bytes is none of codec "'
                f'{excerpt(name)}": {type(error).__name__}: {excerpt(error)}'
            ) from error

    return decode_entry
