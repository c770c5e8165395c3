"""A data loader for torchtitan: name its `Config` in the trainer's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from penstock._base.arguments import one_of
from penstock._base.errors import InvalidArgumentError
from penstock._load.loader import Loader
from penstock._load.mixture import Mixture
from penstock._load.options import Uneven
from penstock.adapters._common import missing
from penstock.columns import Column, Labels, PositionIds

try:
    import torch

    try:
        from torchtitan.components.data.loader import BaseDataLoader  # main, after 0.3
    except ModuleNotFoundError as error:
        if error.name not in ("torchtitan.components.data", "torchtitan.components.data.loader"):
            raise
        from torchtitan.components.dataloader import BaseDataLoader
except ImportError as error:
    raise missing("torchtitan", "torchtitan", error, "0.3.0 and main of August 2026") from error


class DataLoader(BaseDataLoader):  # type: ignore[misc]
    """A mixture as torchtitan's data loader; `trainer.Config(dataloader=DataLoader.Config(mixture="mix.json"))`.

    torchtitan gives rank, world size, sequence length and batch size, and saves the state under "dataloader": three
    keys, the same on every rank, so that a run goes on with another data-parallel degree, and with the same steps if
    the global batch stays. A step's batches are fetched as it begins; one that the data's end cuts off is not trained.

    It yields ({"input": [B, W], "positions": [B, W]}, labels [B, W]), int64; to torchtitan's main, which counts a batch
    in tokens, the same rows end to end, [B * W] each. torchtitan slices them for context parallelism itself.
    """

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):  # type: ignore[misc]
        """The arguments that decide the order.

        Attributes:
            mixture: a file for `penstock.Mixture.from_file`, with lookahead 1 and windows of `training.seq_len`, or
                of `training.max_context_length` on main.
            seed: of the order.
            positions: "documents": positions begin at 0 in each document, which block-causal attention goes by, and
                labels never cross documents. "rows": positions begin at 0 in each row, for tokens without documents.
            infinite: False refuses a mixture without an end; the validator of 0.3 says it where it reads all.
            repeat: the same, as main calls it.
            global_batch_size: rows of all ranks' batches together; None: as many as torchtitan says for each rank,
                times the ranks.
            uneven: "pad" takes a global batch size that the data-parallel degree does not divide. Rows that a rank
                has less are padding, with labels that torchtitan does not count, so its loss is that of the global
                batch; torchtitan's own batch size of a rank is that number divided by the degree, rounded up.
        """

        mixture: str = ""
        seed: int = 0
        positions: str = "documents"
        infinite: bool = True
        repeat: bool = True
        global_batch_size: int | None = None
        uneven: str = "refuse"

    def __init__(
        self,
        config: Config,
        *,
        dp_world_size: int,
        dp_rank: int,
        seq_len: int | None = None,
        local_batch_size: int | None = None,
        max_context_length: int | None = None,
        num_tokens_per_batch: int | None = None,
        **_: Any,
    ) -> None:
        """Opens the mixture; torchtitan calls this by `Config.build`.

        Args:
            config: of this class.
            dp_world_size: data-parallel ranks.
            dp_rank: this one.
            seq_len: the window; with
            local_batch_size: rows of each batch. Or, from main:
            max_context_length: the window; with
            num_tokens_per_batch: tokens of each batch, whole windows.
            **_: what torchtitan gives besides: the tokenizer, since tokens are read, and how often states are taken.

        Raises:
            InvalidArgumentError: no mixture; one of other windows, without lookahead, or without an end where one is
                wanted; a source that does not say where documents begin; a batch that is not whole windows.
            NotFoundError: no such file, or no such dataset.
        """
        if not config.mixture:
            raise InvalidArgumentError("DataLoader.Config(mixture=''): give the path of a mixture's JSON file")
        one_of("positions", config.positions, ("documents", "rows"))
        self._folded = num_tokens_per_batch is not None
        window, rows = _shape(seq_len, local_batch_size, max_context_length, num_tokens_per_batch)
        view = Mixture.from_file(config.mixture)
        _check(view, config, window, "max_context_length" if self._folded else "seq_len")
        columns: list[Column] = [] if config.positions == "rows" else [PositionIds(), Labels(cross_document=False)]
        try:
            self.loader = Loader(
                view,
                batch_size=rows if config.global_batch_size is None else None,
                global_batch_size=config.global_batch_size,
                uneven=cast("Uneven", config.uneven),
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
        if self.loader.batch_size != rows:
            raise InvalidArgumentError(
                f"DataLoader.Config(global_batch_size={config.global_batch_size}): {self.loader.batch_size:,} rows on "
                f"each of {dp_world_size:,} ranks, and torchtitan's batches have {rows:,}: make its batch size of a "
                f"rank {self.loader.batch_size:,}"
            )

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
        if self._folded:
            inputs, positions, labels = inputs.flatten(), positions.flatten(), labels.flatten()
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


def _shape(
    seq_len: int | None, local_batch_size: int | None, max_context_length: int | None, num_tokens_per_batch: int | None
) -> tuple[int, int]:
    """Records of a window and rows of a batch, as 0.3 says them or as main does."""
    if seq_len is not None and local_batch_size is not None:
        return seq_len, local_batch_size
    if max_context_length is None or num_tokens_per_batch is None:
        raise InvalidArgumentError(
            "DataLoader.Config.build(): give seq_len= and local_batch_size= as torchtitan 0.3 does, or "
            "max_context_length= and num_tokens_per_batch= as its main does"
        )
    if num_tokens_per_batch % max_context_length != 0:
        raise InvalidArgumentError(
            f"torchtitan's batches of {num_tokens_per_batch:,} tokens are not whole windows of {max_context_length:,}: "
            "make training.num_tokens_per_microbatch_per_dp_rank a multiple of training.max_context_length"
        )
    return max_context_length, num_tokens_per_batch // max_context_length


def _check(view: Mixture, config: DataLoader.Config, window: int, name: str) -> None:
    windows = max(each for _, each in view._window_changes())
    if windows != window:
        raise InvalidArgumentError(
            f"{config.mixture}: windows of {windows:,}, and torchtitan's {name} is {window:,}: "
            f'give the sources "window": {window}'
        )
    if view.first.lookahead != 1:
        raise InvalidArgumentError(f'{config.mixture}: labels need a record more: give the sources "lookahead": 1')
    if not (config.infinite and config.repeat) and view.run_end is None:
        said = "repeat" if config.infinite else "infinite"
        raise InvalidArgumentError(
            f'{config.mixture}: this mixture has no end, and {said}=False reads all of it: give it "end" or "epochs"'
        )
