"""CRC32C and XXH3-128 (seed 0) in plain NumPy, from their public definitions, and digests of what was read."""

import json
from typing import Any

import numpy as np

_MASK = (1 << 64) - 1
_BLOCK = 4096


def _crc_tables() -> np.ndarray:
    """Table k, of 256: the effect of a byte that k bytes follow."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> 1) ^ np.where(table & 1, np.uint32(0x82F63B78), np.uint32(0))
    tables = np.empty((_BLOCK, 256), np.uint32)
    tables[0] = table
    for k in range(1, _BLOCK):
        tables[k] = table[tables[k - 1] & 255] ^ (tables[k - 1] >> 8)
    return tables


_TABLES = _crc_tables()


def crc32c(data: bytes) -> int:
    """The CRC32C of all of `data`."""
    state = 0xFFFFFFFF
    for at in range(0, len(data), _BLOCK):
        block = np.frombuffer(data[at : at + _BLOCK], np.uint8).copy()
        head = np.frombuffer(np.uint32(state).tobytes(), np.uint8)
        size = min(4, len(block))
        block[:size] ^= head[:size]
        found = np.bitwise_xor.reduce(_TABLES[np.arange(len(block))[::-1], block])
        state = int(found) ^ (state >> (8 * size) if size < 4 else 0)
    return state ^ 0xFFFFFFFF


def crcs(data: bytes) -> list[int]:
    """The CRC32C of each 4,096 bytes of `data`."""
    return [crc32c(data[at : at + _BLOCK]) for at in range(0, len(data), _BLOCK)]


_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248e"
    "e03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d"
    "8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc"
    "8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_P32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_P64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)


def _u4(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _u8(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _swapped(value: int, size: int) -> int:
    return int.from_bytes(value.to_bytes(size, "little"), "big")


def _folded(a: int, b: int) -> int:
    return (a * b & _MASK) ^ (a * b >> 64)


def _avalanche(h: int) -> int:
    h = (h ^ (h >> 37)) * 0x165667919E3779F9 & _MASK
    return h ^ (h >> 32)


def _avalanche_64(h: int) -> int:
    h = (h ^ (h >> 33)) * _P64[1] & _MASK
    h = (h ^ (h >> 29)) * _P64[2] & _MASK
    return h ^ (h >> 32)


def _short(data: bytes) -> tuple[int, int]:
    """Low and high half of up to 16 bytes."""
    n, s = len(data), _SECRET
    if n == 0:
        return _avalanche_64(_u8(s, 64) ^ _u8(s, 72)), _avalanche_64(_u8(s, 80) ^ _u8(s, 88))
    if n < 4:
        low = data[0] << 16 | data[n >> 1] << 24 | data[-1] | n << 8
        high = _swapped(low, 4)
        high = (high << 13 | high >> 19) & 0xFFFFFFFF
        return _avalanche_64(low ^ _u4(s, 0) ^ _u4(s, 4)), _avalanche_64(high ^ _u4(s, 8) ^ _u4(s, 12))
    if n <= 8:
        keyed = (_u4(data, 0) | _u4(data, n - 4) << 32) ^ _u8(s, 16) ^ _u8(s, 24)
        product = keyed * (_P64[0] + (n << 2))
        low, high = product & _MASK, product >> 64
        high = (high + (low << 1)) & _MASK
        low ^= high >> 3
        low = (low ^ (low >> 35)) * 0x9FB21C651E98DF25 & _MASK
        return low ^ (low >> 28), _avalanche(high)
    first, last = _u8(data, 0), _u8(data, n - 8)
    product = (first ^ last ^ _u8(s, 32) ^ _u8(s, 40)) * _P64[0]
    low, high = ((product & _MASK) + ((n - 1) << 54)) & _MASK, product >> 64
    last ^= _u8(s, 48) ^ _u8(s, 56)
    high = (high + last + (last & 0xFFFFFFFF) * (_P32[1] - 1)) & _MASK
    product = (low ^ _swapped(high, 8)) * _P64[1]
    return _avalanche(product & _MASK), _avalanche(((product >> 64) + high * _P64[1]) & _MASK)


def _middle(data: bytes) -> tuple[int, int]:
    """Low and high half of 17 to 240 bytes."""
    n, s = len(data), _SECRET
    low, high = n * _P64[0] & _MASK, 0

    def mix(a: int, b: int, key: int) -> None:
        nonlocal low, high
        low = (low + _folded(_u8(data, a) ^ _u8(s, key), _u8(data, a + 8) ^ _u8(s, key + 8))) & _MASK
        low ^= (_u8(data, b) + _u8(data, b + 8)) & _MASK
        high = (high + _folded(_u8(data, b) ^ _u8(s, key + 16), _u8(data, b + 8) ^ _u8(s, key + 24))) & _MASK
        high ^= (_u8(data, a) + _u8(data, a + 8)) & _MASK

    if n <= 128:
        for i in reversed(range((n - 1) // 32 + 1)):
            mix(16 * i, n - 16 * (i + 1), 32 * i)
    else:
        for i in range(32, 160, 32):
            mix(i - 32, i - 16, i - 32)
        low, high = _avalanche(low), _avalanche(high)
        for i in range(160, n + 1, 32):
            mix(i - 32, i - 16, 3 + i - 160)
        mix(n - 16, n - 32, 103)
    mixed = (low * _P64[0] + high * _P64[3] + n * _P64[1]) & _MASK
    return _avalanche((low + high) & _MASK), -_avalanche(mixed) & _MASK


def _words(at: int, count: int = 8) -> np.ndarray:
    return np.frombuffer(_SECRET[at : at + 8 * count], "<u8")


_KEYS = np.stack([_words(8 * i) for i in range(16)])
_START = np.array([_P32[2], *_P64[:4], _P32[1], _P64[4], _P32[0]], np.uint64)


def _added(stripes: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """What stripes of 8 words add to the state."""
    keyed = stripes ^ keys
    product = (keyed & np.uint64(0xFFFFFFFF)) * (keyed >> np.uint64(32))
    swapped = stripes.reshape(*stripes.shape[:-1], 4, 2)[..., ::-1].reshape(stripes.shape)
    return (product + swapped).sum(-2)


def _long(data: bytes) -> tuple[int, int]:
    """Low and high half of more than 240 bytes."""
    n, state = len(data), _START
    blocks = (n - 1) // 1024
    for sums in _added(np.frombuffer(data[: 1024 * blocks], "<u8").reshape(blocks, 16, 8), _KEYS):
        state = state + sums
        state = (state ^ (state >> np.uint64(47)) ^ _words(128)) * np.uint64(_P32[0])
    stripes = (n - 1 - 1024 * blocks) // 64
    rest = np.frombuffer(data[1024 * blocks : 1024 * blocks + 64 * stripes], "<u8").reshape(stripes, 8)
    state = state + _added(rest, _KEYS[:stripes])
    state = state + _added(np.frombuffer(data[-64:], "<u8").reshape(1, 8), _words(121))

    def merged(at: int, start: int) -> int:
        keyed = [int(a) for a in state ^ _words(at)]
        return _avalanche((start + sum(_folded(*keyed[i : i + 2]) for i in range(0, 8, 2))) & _MASK)

    return merged(11, n * _P64[0]), merged(117, ~(n * _P64[1]) & _MASK)


def xxh3(data: bytes) -> bytes:
    """The 16 bytes of XXH3-128 of `data`, most significant first."""
    low, high = (_short if len(data) <= 16 else _middle if len(data) <= 240 else _long)(data)
    return (high << 64 | low).to_bytes(16, "big")


# ---- digests of a dataset, from docs/format.md


def leaves(values: np.ndarray) -> list[np.ndarray]:
    """The scalars in nested fields, depth first."""
    if values.dtype.names is None:
        return [values]
    return [leaf for name in values.dtype.names for leaf in leaves(values[name])]


def _shard_digests(shard: Any, mode: str) -> tuple[list[str], str | None]:
    """Of each leaf, and of the spans."""
    of_leaves = [xxh3(leaf.tobytes()).hex() for leaf in (leaves(shard.stream) if shard.stream.dtype.names else [])]
    if mode == "tokens":
        return of_leaves, None
    pairs = zip(np.diff(shard.firsts).tolist(), (shard.entries[i] for i in shard.ids), strict=True)
    spans = [np.array((count, len(entry)), "<u8").tobytes() + xxh3(entry) for count, entry in pairs]
    return of_leaves, xxh3(b"".join(spans)).hex()


def fingerprint(dataset: Any) -> str:
    """Computed anew; compares the digests with those of the manifest, and features with their fingerprint."""
    lines = ["penstock fingerprint 1", f"mode {dataset.manifest['mode']}"]
    for name in ("fields", "codec"):
        said = json.dumps(dataset.manifest[name], separators=(",", ":"), sort_keys=True, ensure_ascii=False)
        lines.append(f"{name} {said}")
    for shard in dataset.shards:
        said, (of_leaves, spans) = shard.stated, _shard_digests(shard, dataset.manifest["mode"])
        assert (list(said["digests"]["fields"].values()), said["digests"]["spans"]) == (of_leaves, spans), shard.folder
        of_columns = {name: xxh3(stored.tobytes()).hex() for name, (stored, _) in shard.columns.items()}
        assert said.get("values", {"digests": {}})["digests"] == of_columns, shard.folder
        lines.append(" ".join(("shard", str(said["records"]), *of_leaves, spans or "-")))
    assert dataset.features is None or fingerprint(dataset.features) == dataset.manifest["features"]["fingerprint"]
    return xxh3("\n".join((*lines, "")).encode()).hex()
