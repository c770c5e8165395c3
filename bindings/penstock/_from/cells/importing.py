"""`penstock.import_anndata`: what it takes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from penstock._base.errors import InvalidArgumentError
from penstock._data.anndata.counts import Counts, member, of_each
from penstock._data.anndata.members import LAYERS, X
from penstock._data.anndata.opened import Input
from penstock._data.anndata.soma import is_soma
from penstock._data.anndata.soma import write_as_h5ad as write_soma_as_h5ad
from penstock._data.anndata.stores import format_of
from penstock._from.cells.mtx import folder_of_mtx, is_mtx, write_as_h5ad
from penstock._from.cells.plan import matrix_names
from penstock._from.cells.recipe import CellRecipe, Imported
from penstock._from.cells.told import Told
from penstock._make.executors import executor_of, is_far
from penstock._make.folders import folder_of
from penstock._make.run import Run
from penstock._places.paths import PathLike, as_paths, expand, local_path
from penstock._places.storage import Storage

if TYPE_CHECKING:
    from penstock._make.pools import Executor


def import_anndata(
    inputs: PathLike | Iterable[PathLike],
    out: PathLike,
    x: Counts = "X",
    layers: Sequence[str] = (),
    obs: Sequence[str] | None = None,
    obsm: Sequence[str] = (),
    join: str = "exact",
    workers: int | Executor = 1,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
    *,
    preparing: Callable[[str, int, int], None] | None = None,
    format: str | None = None,
    modality: str | None = None,
    raw: bool = False,
    overwrite: bool = False,
    storage: Storage | None = None,
    scratch: PathLike | None = None,
) -> Imported:
    """Makes a dataset of AnnData's .h5ad files or zarr stores: a document a cell, with a record for each gene it has.

    MuData's .h5mu files (one modality), 10x Genomics' .h5 files and folders of matrix.mtx, barcodes.tsv and
    features.tsv are taken too; genes of the latter two are named by their ids. So are SOMA experiments of TileDB, with
    the package tiledbsoma.

    Memory is bounded whatever the inputs' size, and the bytes written are the same for any `workers`. Needs the extra
    `cells`.

    Args:
        inputs: a file or folder, a glob of them, or several: their cells end to end.
        out: the dataset's folder, or its address in a bucket: s3://, gs:// or az://. Each worker then writes a shard
            here and uploads it.
        x: where the counts are: "X", "raw" or "layers/NAME"; or a list with a place for each of `inputs` (for all that
            a glob matches), or {input: place}, where others have "X".
        layers: names of layers that become fields beside `count`.
        obs: columns of obs; None: all. Strings of more than 65,535 values go to the cells' entries.
        obsm: names of dense obsm, which become columns.
        join: "exact" (inputs have the same genes in the same order), "inner" (genes of all) or "outer" (of any).
        workers: processes; 1: this one alone. Or an executor, such as penstock.ray.Cluster.
        resume: keep the finished shards of a run that did not end and had the same options. Inputs that changed since
            are refused.
        progress: called with (cells done, cells in all) now and then; may raise to stop.
        preparing: called with (what is done, share of the cells, cells in all) while none is written: counts are looked
            at, compressed columns transposed; may raise to stop.
        format: "h5ad", "zarr", "mtx" or "soma"; None: as the extension and what is in a folder say.
        modality: of .h5mu files and MuData's zarr stores, which of them; of SOMA experiments the measurement, of which
            x="layers/NAME" is a layer of X.
        raw: keep raw of the inputs, which have the same genes there, in the cells' entries, where an export finds it.
        overwrite: replace a dataset that is there, once the new one is whole.
        storage: how a bucket is reached.
        scratch: where the shards of a bucket are until they are uploaded, one for each worker, and compressed columns
            while they are transposed; None: the folder of temporary files. Not for a folder of this machine.

    Returns:
        Counts, and what was left out.

    Raises:
        InvalidArgumentError: an input that cannot be, with file, cell and gene, or that changed; something is at `out`.
        CorruptionError: a part of an input cannot be read; the message names file and member.
        NotFoundError: an input is not there.
        IoError: the dataset cannot be written; finished shards are kept.
        RuntimeError: a worker process was killed; finished shards are kept.

    Examples:
        >>> import anndata, numpy, os, penstock, scipy.sparse, tempfile  # doctest: +SKIP
        >>> folder = tempfile.mkdtemp()  # doctest: +SKIP
        >>> anndata.AnnData(scipy.sparse.eye(3, format="csr")).write_h5ad(f"{folder}/eye.h5ad")  # doctest: +SKIP
        >>> penstock.import_anndata(f"{folder}/eye.h5ad", f"{folder}/eye").records  # doctest: +SKIP
        3
    """
    begin = time.perf_counter()
    given = as_paths(inputs)
    if not given:
        raise InvalidArgumentError("inputs: the list is empty: give at least one")
    for name, value in (("layers", layers), ("obs", obs), ("obsm", obsm)):
        if isinstance(value, str):
            raise InvalidArgumentError(f"{name}={value!r:.80}: a list of names is wanted")
    if isinstance(x, str) and not x.startswith(LAYERS) and set("./") & set(x):
        raise InvalidArgumentError(
            f"import_anndata(…, {str(out)!r:.80}, {x!r:.80}): the third argument is x=: X, raw or layers/NAME; several "
            "inputs are a list, which comes first"
        )
    found = [(folder_of_mtx(path), own) for each, own in _placed(given, x) for path in expand(local_path(each))]
    paths, places = [path for path, _ in found], [own for _, own in found]
    if raw and "raw" in places:
        raise InvalidArgumentError("raw=True with x='raw': raw is what is imported")
    executor = executor_of(workers)
    folder = folder_of(out, storage, scratch)
    if is_far(executor):  # on other machines, where the working directory is another
        paths = [str(Path(each).absolute()) for each in paths]
        folder = folder.absolute()
    options = {
        "x": places[0] if len(set(places)) == 1 else places,
        "layers": list(layers),
        "obs": obs if obs is None else list(obs),
        "obsm": list(obsm),
        "join": join,
        **({} if modality is None else {"modality": modality}),
        **({"raw": True} if raw else {}),
    }
    told = Told(progress, preparing)
    with ExitStack() as texts:
        names = [matrix_names(each, layers) for each in dict.fromkeys(places)]
        opened = _inputs(paths, places, format, modality, scratch, is_far(executor), texts)
        recipe = CellRecipe(
            opened, names[0] if len(names) == 1 else matrix_names(X, layers), options, told, folder.path
        )
        try:
            made = Run(recipe, folder, executor, resume=resume, overwrite=overwrite, progress=told.wrote).make()
        finally:
            recipe.close()
    done = recipe.imported
    done.cells, done.records, done.shards, done.kept_shards = (
        made.documents,
        made.records,
        made.shards,
        made.kept_shards,
    )
    done.seconds = time.perf_counter() - begin
    return done


def _placed(given: list[PathLike], x: Counts) -> list[tuple[PathLike, str]]:
    """Inputs with the place of their counts."""
    return list(zip(given, of_each(x, given), strict=True))


def _inputs(
    paths: list[str],
    places: list[str],
    format: str | None,
    modality: str | None,
    scratch: PathLike | None,
    far: bool,
    texts: ExitStack,
) -> list[Input]:
    """How each is read; folders of text and SOMA experiments are written as .h5ad files, which `texts` removes.

    The layer of an experiment that is wanted is X of its file.
    """
    found = []
    for number, (path, x) in enumerate(zip(paths, places, strict=True)):
        if format == "mtx" or (format is None and is_mtx(path)):
            if not is_mtx(path):
                raise InvalidArgumentError(f"{path}: no folder with a matrix.mtx or matrix.mtx.gz")
            if far or modality is not None:
                what = "workers on other machines" if far else f"modality={modality!r}"
                raise InvalidArgumentError(f"{path}: a folder of Matrix Market files does not go with {what}")
            file = _scratch_folder(scratch, texts) / f"{number}.h5ad"
            write_as_h5ad(path, file)
            found.append(Input(path, "h5ad", None, str(file), member(x)))
        elif format == "soma" or (format is None and is_soma(path)):
            if far:
                raise InvalidArgumentError(f"{path}: a SOMA experiment does not go with workers on other machines")
            file = _scratch_folder(scratch, texts) / f"{number}.h5ad"
            write_soma_as_h5ad(path, modality, None if x == X else x.removeprefix(LAYERS), file)
            found.append(Input(path, "h5ad", None, str(file), X))
        else:
            found.append(Input(path, format_of(path, format), modality, x=member(x)))
    return found


def _scratch_folder(scratch: PathLike | None, texts: ExitStack) -> Path:
    """A new folder, which `texts` removes."""
    folder = tempfile.TemporaryDirectory(prefix="penstock-cells-", dir=None if scratch is None else local_path(scratch))
    return Path(texts.enter_context(folder))
