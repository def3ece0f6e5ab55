"""Change a model file at random where it hurts most, with every checksum right."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import random
import struct
import zipfile
from dataclasses import dataclass
from typing import Any

WEIGHTS, MANIFEST = "weights.safetensors", "manifest.json"
PARTS = {"method.json": 12, "targets.json": 3, "card.json": 3, "standardiser.json": 1, "vectors.json": 1}
NUMBERS = (
    0, -1, 1, 2, 3, 7, 8, 64, 255, 4096, 1 << 16, 1 << 20, 1 << 31, 1 << 53, 1 << 63, -(1 << 63), 10**30, 10**400,
    0.0, -0.5, 0.5, 3.5, 1e-320, 1e18, 1e300, -1e308,
)  # fmt: skip
ODD = (
    *NUMBERS,
    "",
    "x",
    "1",
    "\x1b[2J",
    "\x00",
    "é" * 3,
    "a" * 5000,
    "../../x",
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
)
ODD_DTYPES = ("F64", "F32", "F16", "I64", "I32", "I8", "U8", "BOOL", "X", 3, None)
DOUBLES = (0.0, -0.0, 1.0, -1.0, 0.5, 1e9, -1e300, float("inf"), float("nan"))
LONGS = (1, 2, -1, 255, 1 << 31, (1 << 63) - 1)
WORDS = (*(struct.pack("<d", v) for v in DOUBLES), *(struct.pack("<q", v) for v in LONGS), b"\x00\x00\xc0\x7f" * 2)


@dataclass
class Opened:
    """A model file's parts: JSON values by name, and the header and bytes of its arrays."""

    parts: dict[str, Any]
    header: Any
    data: bytes


def unpack(whole: bytes) -> Opened:
    """The parts of a sound file."""
    with zipfile.ZipFile(io.BytesIO(whole)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    weights = members.pop(WEIGHTS)
    members.pop(MANIFEST)
    end = 8 + int.from_bytes(weights[:8], "little")
    parts = {name: json.loads(data) for name, data in members.items()}
    return Opened(parts, json.loads(weights[8:end]), weights[end:])


def pack(opened: Opened) -> bytes:
    """A file of those parts (JSON values, or bytes as they are), whose manifest and checksums fit."""
    members = {n: v if isinstance(v, bytes) else json.dumps(v).encode() for n, v in opened.parts.items()}
    text = json.dumps(opened.header).encode()
    members[WEIGHTS] = struct.pack("<Q", len(text)) + text + opened.data
    about = {n: {"sha256": hashlib.sha256(d).hexdigest(), "size": len(d)} for n, d in members.items()}
    manifest = {"format": "molgraph model", "version": 1, "molgraph": "0.1.0", "members": about}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, data in {MANIFEST: json.dumps(manifest).encode(), **members}.items():
            kind = zipfile.ZIP_STORED if name == WEIGHTS else zipfile.ZIP_DEFLATED
            file.writestr(zipfile.ZipInfo(name), data, compress_type=kind)
    return out.getvalue()


def mutated(whole: bytes, seed: int) -> tuple[bytes, str]:
    """A changed file, and what was changed; the same seed gives the same file."""
    rng = random.Random(seed)
    if rng.random() < 0.05:
        changed = bytearray(whole)
        at = rng.randrange(len(changed))
        changed[at : at + rng.choice((1, 4, 16))] = rng.randbytes(rng.choice((1, 4, 16)))
        return bytes(changed), f"raw bytes at {at}"
    opened = unpack(whole)
    done = []
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        change = rng.choices((_json, _key, _header, _bytes, _resize), weights=(12, 2, 3, 4, 3))[0]
        try:
            done.append(change(opened, rng))
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            ArithmeticError,
            struct.error,
        ):  # one before left nothing to change
            done.append("nothing")
    return pack(opened), "; ".join(done)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value below this one; of a long list the first and last few alone."""
    items = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    found = []
    for key, each in items if isinstance(value, dict) else items[:4] + items[4:][-2:]:
        found += [(*path, key), *_places(each, (*path, key))]
    return found


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _json(opened: Opened, rng: random.Random) -> str:
    """Put an odd value somewhere: among the parameters more often than elsewhere."""
    name = rng.choices(list(PARTS), weights=list(PARTS.values()))[0]
    places = _places(opened.parts[name])
    inner = [p for p in places if "params" in p or "features" in p or "targets" in p]
    path = rng.choice(inner if inner and rng.random() < 0.7 else places)
    holder, old = _at(opened.parts[name], path[:-1]), _at(opened.parts[name], path)
    near: list[Any] = [[old], str(old), _at(opened.parts[name], rng.choice(places))]
    if isinstance(old, int | float):
        near += [old * 2, old + 1, old - 1, -old, old * 1000, float(old), old + 0.5] * 2
    new = rng.choice(near) if rng.random() < 0.4 else rng.choice(ODD)
    holder[path[-1]] = copy.deepcopy(new)
    return f"{name} {'.'.join(map(str, path))} = {str(new)[:30]!r}"


def _key(opened: Opened, rng: random.Random) -> str:
    """Remove, rename or add a key."""
    name = rng.choices(list(PARTS), weights=list(PARTS.values()))[0]
    path = rng.choice([p for p in _places(opened.parts[name]) if isinstance(p[-1], str)])
    holder = _at(opened.parts[name], path[:-1])
    kind = rng.choice(("remove", "rename", "add"))
    value = holder.pop(path[-1]) if kind != "add" else rng.choice(ODD)
    if kind != "remove":
        holder[rng.choice(("threads", "store", "params", "x", "depth", "device"))] = value
    return f"{name} {kind} {'.'.join(map(str, path))}"


def _header(opened: Opened, rng: random.Random) -> str:
    """Change what the header says of an array, or of all."""
    if rng.random() < 0.1:
        opened.header = rng.choice(
            ([], "x", None, 3, {"__metadata__": 3}, {**opened.header, "__metadata__": {"a": [1]}})
        )
        return "header of another kind"
    name = rng.choice(list(opened.header))
    entry = opened.header[name]
    shape = entry["shape"]
    change = rng.choice(("dtype", "shape", "offsets", "swap", "remove", "entry", "name"))
    if change == "dtype":
        entry["dtype"] = rng.choice(ODD_DTYPES)
    elif change == "shape":
        flat = 1
        for n in shape:
            flat *= n
        entry["shape"] = rng.choice(
            (shape[::-1], [flat], [1, *shape], [*shape, 1], [flat, 1], [float(n) for n in shape], [-n for n in shape],
             [1 << 62, 4], [True] * len(shape), "x", None, [0], [0, *shape], [1] * 40 + shape)
        )  # fmt: skip
    elif change == "offsets":
        begin, end = entry["data_offsets"]
        entry["data_offsets"] = rng.choice(([begin, end + 1], [end, begin], [-1, end], [begin], [0.0, end], None, "ab"))
    elif change == "swap":
        other = rng.choice(list(opened.header))
        opened.header[name], opened.header[other] = opened.header[other], entry
    elif change == "entry":
        opened.header[name] = rng.choice((None, [], 3, "x", {}, {**entry, "more": 1}))
    else:
        value = opened.header.pop(name)
        if change == "name":
            opened.header[rng.choice((name + "x", "member-0." + name, "", "target_0." + name))] = value
    return f"header {change} of {name}"


def _bytes(opened: Opened, rng: random.Random) -> str:
    """Put odd numbers into an array."""
    name = rng.choice(list(opened.header))
    begin, end = opened.header[name]["data_offsets"]
    data = bytearray(opened.data)
    width = 8 if opened.header[name]["dtype"] in ("F64", "I64") else 4
    for _ in range(rng.choice((1, 1, 3, 20))):
        at = begin + rng.randrange(max(1, (end - begin) // width)) * width
        word = rng.choice(WORDS)
        if width == 4:
            word = rng.choice(
                (struct.pack("<f", max(min(struct.unpack("<d", word)[0], 3e38), -3e38)), word[:4], word[4:])
            )
        data[at : min(at + width, end)] = word[: min(width, end - at)]
    if rng.random() < 0.1:
        data[begin:end] = rng.choice((bytes(end - begin), b"\xff" * (end - begin), rng.randbytes(end - begin)))
    opened.data = bytes(data)
    return f"bytes of {name}"


def _resize(opened: Opened, rng: random.Random) -> str:
    """Make an array longer or shorter along its first axis, with a header that fits."""
    name = rng.choice(list(opened.header))
    entry = opened.header[name]
    (begin, end), shape = entry["data_offsets"], entry["shape"]
    row = (end - begin) // shape[0]
    n = rng.choice((0, 1, shape[0] // 2, shape[0] - 1, shape[0] + 1, shape[0] * 2, min(shape[0] * 100, 20_000)))
    piece = opened.data[begin:end]
    piece = (piece * (n // shape[0] + 1))[: n * row]
    opened.data = opened.data[:begin] + piece + opened.data[end:]
    more = len(piece) - (end - begin)
    entry["shape"] = [n, *shape[1:]]
    entry["data_offsets"] = [begin, begin + len(piece)]
    for other in opened.header.values():
        if other is not entry and other["data_offsets"][0] >= end:
            other["data_offsets"] = [v + more for v in other["data_offsets"]]
    return f"{name} of {n} rows"
