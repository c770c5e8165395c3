"""A data loader for torchtitan: name its `Config` in the trainer's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock._arguments import one_of
from penstock._errors import InvalidArgumentError
from penstock._loader import Loader
from penstock._mixture import Mixture
from penstock.adapters._common import missing
from penstock.columns import Column, Labels, PositionIds

try:
    import torch
    from torchtitan.components.dataloader import BaseDataLoader
except ModuleNotFoundError as error:
    raise missing("torchtitan", "torchtitan", error) from error


class DataLoader(BaseDataLoader):  # type: ignore[misc]
    """A mixture as torchtitan's data loader; `trainer.Config(dataloader=DataLoader.Config(mixture="mix.json"))`.

    torchtitan gives rank, world size, sequence length and batch size, and saves the state under "dataloader": three
    keys, the same on every rank, so that a run goes on with another data-parallel degree, and with the same steps if
    the global batch stays. A step's batches are fetched as it begins; one that the data's end cuts off is not trained.

    It yields ({"input": [B, W], "positions": [B, W]}, labels [B, W]), int64. torchtitan slices them for context
    parallelism itself.
    """

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):  # type: ignore[misc]
        """What decides the order.

        Attributes:
            mixture: a file for `penstock.Mixture.from_file`, with windows of `training.seq_len` and lookahead 1.
            seed: of the order.
            positions: "documents": positions begin at 0 in each document, which block-causal attention goes by, and
                labels never cross documents. "rows": positions begin at 0 in each row, for tokens without documents.
            infinite: False refuses a mixture without an end; torchtitan's validator says it where it reads all.
        """

        mixture: str = ""
        seed: int = 0
        positions: str = "documents"
        infinite: bool = True

    def __init__(
        self,
        config: Config,
        *,
        dp_world_size: int,
        dp_rank: int,
        seq_len: int,
        local_batch_size: int,
        **_: Any,
    ) -> None:
        """Opens the mixture; torchtitan calls this by `Config.build`.

        Args:
            config: of this class.
            dp_world_size: data-parallel ranks.
            dp_rank: this one.
            seq_len: the window.
            local_batch_size: rows of each batch.
            **_: what torchtitan gives besides: the tokenizer, since tokens are read, and how often states are taken.

        Raises:
            InvalidArgumentError: no mixture; one of other windows, without lookahead, or without an end where one is
                wanted; a source that does not say where documents begin.
            NotFoundError: no such file, or no such dataset.
        """
        if not config.mixture:
            raise InvalidArgumentError("DataLoader.Config(mixture=''): give the path of a mixture's JSON file")
        one_of("positions", config.positions, ("documents", "rows"))
        view = Mixture.from_file(config.mixture)
        _check(view, config, seq_len)
        columns: list[Column] = [] if config.positions == "rows" else [PositionIds(), Labels(cross_document=False)]
        try:
            self.loader = Loader(
                view,
                batch_size=local_batch_size,
                rank=dp_rank,
                world_size=dp_world_size,
                seed=config.seed,
                columns=columns,
                framework="torch",
                pin_memory=torch.accelerator.is_available(),
            )
        except InvalidArgumentError as error:
            if config.positions == "rows" or "end_of_document" not in str(error):
                raise
            raise InvalidArgumentError(
                f"{config.mixture}: {error}; or DataLoader.Config(positions='rows') for tokens without documents"
            ) from error

    def __iter__(self) -> Iterator[tuple[dict[str, Any], Any]]:
        """Goes on at the position."""
        iter(self.loader)
        return self

    def __next__(self) -> tuple[dict[str, Any], Any]:
        """The next batch.

        Raises:
            StopIteration: the mixture is at its end.
        """
        batch = next(self.loader)
        inputs, labels = batch.inputs, batch.labels
        if "position_ids" in batch.columns:
            positions = batch.position_ids.long()
        else:
            positions = torch.arange(inputs.shape[1]).repeat(inputs.shape[0], 1)
        return {"input": inputs, "positions": positions}, labels

    def state_dict(self) -> dict[str, Any]:
        """The loader's state."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where the state was taken; nothing, which torchtitan gives where it has none, changes nothing."""
        if state:
            self.loader.load_state_dict(state)

    def close(self) -> None:
        """Stops the loader's threads; twice is no error. A loader without references stops by itself."""
        self.loader.close()


def _check(view: Mixture, config: DataLoader.Config, seq_len: int) -> None:
    windows = max(window for _, window in view._window_changes())
    if windows != seq_len:
        raise InvalidArgumentError(
            f"{config.mixture}: windows of {windows:,}, and torchtitan's seq_len is {seq_len:,}: "
            f'give the sources "window": {seq_len}'
        )
    if view.first.lookahead != 1:
        raise InvalidArgumentError(f'{config.mixture}: labels need a record more: give the sources "lookahead": 1')
    if not config.infinite and view.run_end is None:
        raise InvalidArgumentError(
            f'{config.mixture}: this mixture has no end, and infinite=False reads all of it: give it "end" or "epochs"'
        )
