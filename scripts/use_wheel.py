"""Uses the installed wheel as someone without torch does: writes a dataset, loads it, asks the CLI about it."""

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import penstock


def main() -> None:
    """Raises where the wheel does not do what it should."""
    assert importlib.util.find_spec("torch") is None, "this environment must not have torch"
    assert "site-packages" in penstock.__file__, penstock.__file__
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus"
        rng = np.random.default_rng(0)
        documents = [rng.integers(0, 1000, size=n, dtype=np.uint32) for n in rng.integers(1, 300, size=50)]
        with penstock.Writer(str(path), fields={"token": "u4"}, metadata="json") as writer:
            for number, tokens in enumerate(documents):
                writer.append(token=tokens, metadata={"number": number})
        stream = np.concatenate(documents)

        view = penstock.open(str(path)).windows(16)
        assert len(view) == len(stream) // 16
        seen = []
        with penstock.Loader(view, batch_size=4, seed=7, epochs=1) as loader:
            for batch in loader:
                assert isinstance(batch["token"], np.ndarray)
                for row, index in enumerate(batch.indices):
                    if index >= 0:
                        assert np.array_equal(batch["token"][row], stream[index * 16 : index * 16 + 16])
                        seen.append(int(index))
        assert sorted(seen) == list(range(len(view)))
        assert "torch" not in sys.modules

        command = [str(Path(sys.executable).parent / "penstock"), "info", str(path), "--json"]
        info = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        assert str(len(stream)) in json.dumps(info), info
    print(f"penstock {penstock.__version__}: written, loaded and described without torch")


if __name__ == "__main__":
    main()
