"""Codecs: how a metadata entry becomes bytes and an object again. Never pickle.

`raw` takes and gives bytes; `json` anything that JSON has; `msgpack` needs the package of that name; `Numpy(dtype)`
arrays of one dtype, decoded without a copy; `boundaries` keeps no bytes: where documents begin and end is all there is
of them, and their metadata is None; `register` adds one of your own.

Examples:
    >>> from penstock import codecs
    >>> codecs.get("json").encode({"url": "example.org"})
    b'{"url":"example.org"}'
    >>> spectrum = codecs.Numpy("f4")
    >>> spectrum.decode(memoryview(spectrum.encode([1.0, 2.5]))).tolist()
    [1.0, 2.5]
"""

from penstock._data.codecs import Codec, Numpy, from_json, get, register

__all__ = ["Codec", "Numpy", "from_json", "get", "register"]
