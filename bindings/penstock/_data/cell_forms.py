"""Arguments of `dataset.cells(…)`, checked once: arrays that the native threads make of each batch of cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.arguments import index, one_of
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt, quoted
from penstock._data.cells import FORMS, Binned, Csr, Dense, Form, Ranked
from penstock._data.dtype import numpy_type
from penstock._data.features import Features

_MOST_GENES = 1 << 27  # the table from genes to their places has as many int32
_MOST_LENGTH = 1 << 31
_MOST_BINS = 1 << 20
_SMALLEST_TOKEN, _LARGEST_TOKEN = -(1 << 63), (1 << 63) - 1


class CellArray(NamedTuple):
    """An array of a batch of cells; flat: [records], else [rows, …]."""

    name: str
    type: np.dtype[Any]
    flat: bool


@dataclass(frozen=True)
class Cells:
    """A form with all that its columns need; pickles.

    Attributes:
        form: which arrays a batch has.
        value: the field that values are of.
        known: genes of the dataset; None: not known.
        width: genes of the batch; None: not known.
        places: int32 by gene of the records, its number in the batch or -1; empty: the same numbers.
        normalize: the sum of each cell's values; None: as they are.
        log1p: whether log(1 + value) is taken.
        tokens: int64 by gene of the batch; empty: gene + 4.
        medians: float64 by gene of the batch; empty: 1.
    """

    form: Form
    value: str
    known: int | None
    width: int | None
    places: npt.NDArray[np.int32]
    normalize: float | None
    log1p: bool
    tokens: npt.NDArray[np.int64]
    medians: npt.NDArray[np.float64]

    @property
    def arrays(self) -> tuple[CellArray, ...]:
        """The arrays of a batch, in the order in which the native column has them."""
        form = self.form
        ids = CellArray("input_ids", np.dtype(np.int64), False)
        mask = CellArray("attention_mask", np.dtype(np.bool_), False)
        if isinstance(form, Csr):
            genes = np.dtype(form.index)
            values = CellArray(self.value, np.dtype(form.dtype), True)
            return CellArray("gene", genes, True), values, CellArray("offsets", genes, False)
        if isinstance(form, Dense):
            return (CellArray("x", np.dtype(form.dtype), False),)
        if isinstance(form, Ranked):
            return ids, mask
        return ids, CellArray("values", np.dtype(np.int64), False), mask

    def maker(self, seed: int) -> _native.ColumnMaker:
        """The maker of the arrays in a loader of this seed."""
        form = self.form
        cells = _native.CellSpec(
            value=self.value,
            known=self.known,
            width=self.width,
            places=self.places,
            normalize=self.normalize,
            log1p=self.log1p,
        )
        if isinstance(form, Csr):
            return _native.make_csr(cells, form.index == "int64", form.dtype == "float64")
        if isinstance(form, Dense):
            return _native.make_dense(cells, form.dtype == "float64")
        sentences = _native.SentenceSpec(
            length=form.length,
            tokens=self.tokens,
            cls=form.cls,
            eos=form.eos if isinstance(form, Ranked) else None,
            pad=form.pad,
        )
        if isinstance(form, Ranked):
            return _native.make_ranked(cells, sentences, self.medians)
        quantiles = np.linspace(0, 1, form.bins - 1)
        return _native.make_binned(cells, sentences, quantiles, form.choose, form.pad_value, seed)

    def words(self) -> str:
        """The arguments that are not the defaults."""
        said = [repr(self.form) if repr(self.form) != repr(type(self.form)()) else repr(self.form.name)]
        if self.value != "count":
            said.append(f"value={self.value!r}")
        if self.places.size or (self.width is not None and self.width != self.known):
            said.append(f"genes=[{self.width:,}]")
        if self.normalize is not None:
            said.append(f"normalize={self.normalize:g}")
        if self.log1p:
            said.append("log1p=True")
        return ", ".join(said)


def resolve(
    form: str | Form,
    value: str,
    genes: Any,
    normalize: float | None,
    log1p: bool,
    fields: np.dtype[Any] | None,
    features: Features | None,
) -> Cells:
    """The form of a dataset with these fields and features.

    Raises:
        InvalidArgumentError: an argument that cannot be, or records that are no cells.
    """
    checked = _checked_form(form)
    _check_fields(fields, value)
    known = None if features is None else len(features)
    chosen = None if genes is None else _gene_numbers(genes, features)
    width = known if chosen is None else len(chosen)
    names = None if features is None else lambda: _names(features, chosen)
    tokens = np.empty(0, np.int64)
    medians = np.empty(0, np.float64)
    if isinstance(checked, Ranked | Binned):
        tokens = _by_gene("tokens", checked.tokens, width, names, -1, np.dtype(np.int64), _check_tokens)
        width, known = _width_by("tokens", tokens, width, known, chosen)
    if isinstance(checked, Ranked):
        medians = _by_gene("medians", checked.medians, width, names, math.nan, np.dtype(np.float64), _check_medians)
        width, known = _width_by("medians", medians, width, known, chosen)
        missing = np.isnan(medians)
        if missing.any():
            tokens = np.where(missing, -1, tokens if tokens.size else np.arange(4, 4 + medians.size))
            medians = np.where(missing, 1, medians)
    if isinstance(checked, Dense) and width is None:
        raise InvalidArgumentError(
            "Dense: how many genes are there? The dataset does not say: give genes=, as genes=range(62710)"
        )
    return Cells(
        form=checked,
        value=value,
        known=known,
        width=width,
        places=_places(chosen),
        normalize=_checked_sum(normalize),
        log1p=bool(log1p),
        tokens=np.ascontiguousarray(tokens, np.int64),
        medians=np.ascontiguousarray(medians, np.float64),
    )


def check_alike(first_name: str, first: Any, name: str, view: Any) -> None:
    """Refuses views of cells whose batches are other arrays, or number other genes.

    Raises:
        InvalidArgumentError: the views differ in what their cells become.
    """
    one, other = first.cells, view.cells
    if one is None or other is None:
        if one is not other:
            raise InvalidArgumentError(f"sources: one of {first_name!r} and {name!r} is of cells, the other is not")
        return
    if not _makes_as(one, other):
        raise InvalidArgumentError(
            f"sources: {first_name!r} is cells({excerpt(one.words())}), {name!r} cells({excerpt(other.words())}): they "
            "must be alike"
        )
    datasets = first.dataset, view.dataset
    tables = [each._native.features_fingerprint for each in datasets]
    if tables[0] == tables[1] and np.array_equal(one.places, other.places):
        return
    mine, theirs = (_batch_names(each.cells, each.dataset.features) for each in (first, view))
    if not mine or not theirs:
        raise InvalidArgumentError(
            f"sources: {first_name!r} and {name!r} number their genes each in its own way, and do not both name them"
        )
    for number, (one_gene, other_gene) in enumerate(zip(mine, theirs, strict=True)):
        if one_gene != other_gene:
            raise InvalidArgumentError(
                f"sources: gene {number:,} is {excerpt(one_gene)!r} in {first_name!r}, {excerpt(other_gene)!r} in "
                f"{name!r}: give both views genes=, the same names in one order"
            )


def _makes_as(one: Cells, other: Cells) -> bool:
    """True if both make the same arrays of the same genes."""
    numbers = [(each.value, each.width, each.normalize, each.log1p, _plain(each.form)) for each in (one, other)]
    arrays = ((one.tokens, other.tokens), (one.medians, other.medians))
    return numbers[0] == numbers[1] and all(np.array_equal(*each) for each in arrays)


def _plain(form: Any) -> Any:
    """Without what is by gene."""
    return replace(form, **{name: None for name in ("tokens", "medians") if hasattr(form, name)})


def _batch_names(cells: Cells, features: Features | None) -> Sequence[str]:
    """Names of the genes of a batch, by number; none where the dataset does not say them."""
    names = () if features is None else features._all_names
    if cells.places.size == 0:
        return names[: cells.width]
    genes = np.flatnonzero(cells.places >= 0)
    return [names[gene] for gene in genes[np.argsort(cells.places[genes])]] if names else []


def _checked_form(form: Any) -> Form:
    if isinstance(form, str):
        if form not in FORMS:
            raise InvalidArgumentError(f"there is no form {form!r} of cells; there are {quoted(list(FORMS))}")
        form = FORMS[form]()
    if not isinstance(form, Csr | Dense | Ranked | Binned):
        raise InvalidArgumentError(
            f"form={form!r:.80}: must be one of {quoted(list(FORMS))} or of penstock.cells, as penstock.cells.Csr()"
        )
    if isinstance(form, Csr):
        return Csr(_one_type("dtype", form.dtype, "float"), _one_type("index", form.index, "int"))
    if isinstance(form, Dense):
        return Dense(_one_type("dtype", form.dtype, "float"))
    special = sum(each is not None for each in (form.cls, form.eos if isinstance(form, Ranked) else None))
    index("length", form.length, special + 1, _MOST_LENGTH)
    for name in ("cls", "eos", "pad", "pad_value"):
        token = getattr(form, name, None)
        if token is not None:
            index(name, token, _SMALLEST_TOKEN, _LARGEST_TOKEN)
    if isinstance(form, Binned):
        index("bins", form.bins, 2, _MOST_BINS)
        one_of("choose", form.choose, ("top", "first", "random"))
    return form


def _one_type(name: str, given: Any, kind: str) -> str:
    found: str = numpy_type(given).name
    one_of(name, found, (f"{kind}32", f"{kind}64"))
    return found


def _check_fields(fields: np.dtype[Any] | None, value: str) -> None:
    names = () if fields is None or fields.names is None else fields.names
    for name in ("gene", value):
        if name not in names:
            there = quoted(list(names)) if names else "none"
            how = "value= names another one" if "gene" in names else "values that are columns come with documents()"
            raise InvalidArgumentError(
                f"cells are documents of records with the fields gene and {excerpt(repr(value))}; these have {there}: "
                f"{how}"
            )
    if value == "gene":
        raise InvalidArgumentError("value='gene': must be the field of the counts")


def _checked_sum(normalize: Any) -> float | None:
    if normalize is None:
        return None
    try:
        if isinstance(normalize, bool):
            raise TypeError
        total = float(normalize)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"normalize={normalize!r:.80}: must be a number, as 1e4") from None
    if not (total > 0 and math.isfinite(total)):
        raise InvalidArgumentError(f"normalize={normalize!r:.80}: must be above 0 and finite")
    return total


def _gene_numbers(genes: Any, features: Features | None) -> npt.NDArray[np.int64]:
    if isinstance(genes, str):
        raise InvalidArgumentError(f"genes={genes!r:.80}: must be a list of names or numbers")
    array = np.asarray(genes if isinstance(genes, np.ndarray | range) else list(genes))
    if array.ndim != 1 or array.size == 0:
        raise InvalidArgumentError(f"genes= of shape {list(array.shape)}: must be names or numbers [n], at least one")
    if array.dtype.kind in "UTO" and all(isinstance(each, str) for each in array):
        array = _numbers_of(array.tolist(), features)
    if array.dtype.kind not in "iu":
        raise InvalidArgumentError(f"genes= of type {array.dtype}: must be names or numbers; a mask is np.flatnonzero")
    most = _MOST_GENES if features is None else len(features)
    wrong = (array < 0) | (array >= most)
    if wrong.any():
        raise InvalidArgumentError(f"genes=: there is no gene {int(array[wrong][0])}: they are from 0 to {most - 1:,}")
    found, counts = np.unique(array, return_counts=True)
    if len(found) < len(array):
        raise InvalidArgumentError(f"genes=: gene {int(found[counts > 1][0])} is named twice")
    return array.astype(np.int64)


def _numbers_of(names: list[str], features: Features | None) -> npt.NDArray[np.int64]:
    if features is None:
        raise InvalidArgumentError(
            "genes= names genes, but the dataset does not say what they are called: give numbers"
        )
    number_of: dict[str, int] = {}
    repeated = set()
    for number, name in enumerate(features._all_names):
        if number_of.setdefault(name, number) != number:
            repeated.add(name)
    for name in names:
        if name not in number_of:
            raise InvalidArgumentError(f"genes=: there is no gene {excerpt(name)!r} among {len(features):,}")
        if name in repeated:
            raise InvalidArgumentError(f"genes=: several genes are called {excerpt(name)!r}: give their numbers")
    return np.array([number_of[name] for name in names], np.int64)


def _names(features: Features, chosen: npt.NDArray[np.int64] | None) -> Sequence[str]:
    return features._all_names if chosen is None else [features._all_names[number] for number in chosen]


def _places(chosen: npt.NDArray[np.int64] | None) -> npt.NDArray[np.int32]:
    # The first genes in their order keep their numbers: the width says how many they are.
    if chosen is None or np.array_equal(chosen, np.arange(len(chosen))):
        return np.empty(0, np.int32)
    places = np.full(int(chosen.max()) + 1, -1, np.int32)
    places[chosen] = np.arange(len(chosen))
    return places


def _by_gene(
    what: str,
    given: Any,
    width: int | None,
    names: Callable[[], Sequence[str]] | None,
    missing: float,
    dtype: np.dtype[Any],
    check: Callable[[npt.NDArray[Any]], None],
) -> npt.NDArray[Any]:
    """Tokens or medians by gene of the batch; empty where none are given."""
    if given is None:
        return np.empty(0, dtype)
    if isinstance(given, Mapping):
        if names is None:
            raise InvalidArgumentError(
                f"{what}= is by names, but the dataset does not say what its genes are called: give an array [genes]"
            )
        known = names()
        values = np.array([given.get(name, missing) for name in known])
        if not any(name in given for name in known):
            raise InvalidArgumentError(
                f"{what}= names none of the {len(known):,} genes: {excerpt(known[0])!r} is one; a column of "
                "dataset.features may have other names of them"
            )
    else:
        values = np.asarray(given)
    wanted = "iu" if dtype.kind == "i" else "iuf"
    if values.ndim != 1 or values.dtype.kind not in wanted:
        raise InvalidArgumentError(
            f"{what}= of shape {list(values.shape)} and type {values.dtype}: must be a mapping from names or "
            f"{'integers' if dtype.kind == 'i' else 'numbers'} [genes]"
        )
    if values.size == 0 or (width is not None and values.size != width):
        raise InvalidArgumentError(
            f"{what}= of {values.size:,} genes: there are {'some' if width is None else f'{width:,}'}"
        )
    made = values.astype(dtype)
    check(made)
    return made


def _width_by(
    what: str,
    values: npt.NDArray[Any],
    width: int | None,
    known: int | None,
    chosen: npt.NDArray[np.int64] | None,
) -> tuple[int | None, int | None]:
    """How many genes there are in the batch and the dataset, now that an array may say so."""
    if values.size == 0 or width is not None:
        return width, known
    return len(values), len(values) if chosen is None else known


def _check_tokens(tokens: npt.NDArray[Any]) -> None:
    wrong = np.flatnonzero(tokens < -1)
    if wrong.size:
        raise InvalidArgumentError(f"tokens=: gene {wrong[0]} has {tokens[wrong[0]]}: -1 means no token")


def _check_medians(medians: npt.NDArray[Any]) -> None:
    wrong = np.flatnonzero((medians <= 0) | np.isinf(medians))
    if wrong.size:
        raise InvalidArgumentError(f"medians=: gene {wrong[0]} has {medians[wrong[0]]}: must be above 0")
