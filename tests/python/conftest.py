"""What all tests need of the process that runs them."""

import signal

import pytest

# A program started in the background has SIGINT ignored, and hands that down: the tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def tokenizer_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small tokenizer.json with special tokens, trained once for all tests."""
    from text_corpus import train_tokenizer

    return str(train_tokenizer(tmp_path_factory.mktemp("tokenizer") / "small.json"))
