"""What all tests need of the process that runs them."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# A program started in the background has SIGINT ignored, and hands that down: the tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def tokenizer_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small tokenizer.json with special tokens, trained once for all tests."""
    from text_corpus import train_tokenizer

    return str(train_tokenizer(tmp_path_factory.mktemp("tokenizer") / "small.json"))


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server of S3 with the empty bucket `data`."""
    from _servers import moto

    folder = tmp_path_factory.mktemp("moto")
    (folder / "empty").mkdir()
    with moto({"data": folder / "empty"}, folder / "log") as address:
        yield address


@pytest.fixture
def place(s3_server: str, request: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A prefix of that bucket for this test, with keys of its own and no other credentials: a _places.Place."""
    pytest.importorskip("obstore")
    from _places import ACCESS, SECRET, Place
    from _servers import without_credentials

    without_credentials(monkeypatch, tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    return Place(s3_server, request.node.name.translate({ord(each): "-" for each in "[]() ,"}))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """An empty Hub for this test, which HF_ENDPOINT names, and no token: a _hub.FakeHub."""
    constants = pytest.importorskip("huggingface_hub.constants")
    from _hub import fake_hub

    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf_home"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "hf_home" / "token"))
    with fake_hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        yield server


@pytest.fixture
def lender(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Gives `pin_memory=True` ordinary tensors: a _lender.Lender."""
    import penstock._load.loader
    from _lender import Lender

    lender = Lender()
    monkeypatch.setattr(penstock._load.loader, "pinned_allocator", lender)
    return lender
