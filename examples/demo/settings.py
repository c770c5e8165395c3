"""What the demo's parts agree on: one JSON file in the output folder, read by every training process."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

SOURCES = ("packages", "modules")  # what the mixture is made of; a dataset each
ROWS_PER_STEP = 12  # of one optimizer step, over all processes: the same on any number of them


@dataclass(frozen=True)
class Shares:
    """How the rows of one step are shared out: processes x accumulation x rows of one batch."""

    processes: int
    accumulation: int
    batch_size: int

    def __str__(self) -> str:
        return f"{self.processes} processes x {self.accumulation} x {self.batch_size} rows"


SHARES = {n: Shares(n, a, b) for n, a, b in [(4, 1, 3), (2, 2, 3), (3, 2, 2)]}
assert all(s.processes * s.accumulation * s.batch_size == ROWS_PER_STEP for s in SHARES.values())


@dataclass(frozen=True)
class Settings:
    out: str
    corpus_bytes: int  # how much text to take, at most
    vocabulary: int
    window: int
    width: int
    layers: int
    steps: int
    save_every: int
    second_stage_at: int  # the step after which the mixture's second stage begins
    kill_at: int  # SIGKILL once this step is done; its last checkpoint is older
    switch_at: int  # where the run on 2 processes ends and that on 3 begins

    @property
    def folder(self) -> Path:
        return Path(self.out)

    @property
    def mixture(self) -> str:
        return str(self.folder / "mix.json")

    @property
    def valid_data(self) -> str:
        return str(self.folder / "valid")

    @property
    def tokenizer(self) -> str:
        return str(self.folder / "tokenizer.json")

    def save_mixture(self, weights: dict[str, int] | None = None) -> None:
        """Writes mix.json: both sources alike, then as `weights` say, without which three of the packages to one."""
        sources = {name: {"path": name, "window": self.window, "lookahead": 1} for name in SOURCES}
        then = {"weights": weights or {"packages": 3, "modules": 1}, "at": self.second_stage_at * ROWS_PER_STEP}
        stages = [{"weights": dict.fromkeys(SOURCES, 1)}, then]
        Path(self.mixture).write_text(json.dumps({"sources": sources, "stages": stages}, indent=2))

    def save(self) -> Path:
        path = self.folder / "settings.json"
        path.write_text(json.dumps(asdict(self), indent=2))
        return path

    @classmethod
    def load(cls, path: str) -> "Settings":
        return cls(**json.loads(Path(path).read_text()))


def settings(out: Path, quick: bool) -> Settings:
    """The demo as the README shows it, or one of seconds for a test."""
    if quick:
        return Settings(
            str(out), 2_000_000, 1024, 64, 32, 2, 24, save_every=4, second_stage_at=13, kill_at=10, switch_at=16
        )
    return Settings(
        str(out), 1 << 40, 4096, 128, 128, 4, 100, save_every=10, second_stage_at=55, kill_at=35, switch_at=70
    )
