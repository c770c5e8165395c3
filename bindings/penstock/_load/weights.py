"""Weights of a mixture's sources as users give them, and the integers that stand in the same ratio."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, SupportsFloat

import numpy as np

from penstock._base.arguments import index, shown
from penstock._base.errors import InvalidArgumentError

Weight = int | float | str | Decimal
"""An integer, or a decimal: a float counts as its repr."""

_MOST_SUM = 1 << 62  # of weights that native code takes, once divided by what divides them all
_PARTS = 10**9  # of the sum, to which floats are rounded that do not fit
_MOST_EXPONENT = 400  # beyond those of floats
_MOST_DIGITS = 1000  # beyond those of the exact value of any float; Python reads no integers of many thousands


def whole_weights(what: str, given: Mapping[str, Any]) -> dict[str, int]:
    """Integers in the ratio of the weights, divided by what divides them all.

    Decimals are taken exactly. Where their sum does not fit and one of them is a float, all are rounded to 10^-9 of the
    sum.

    Args:
        what: of which they are, for errors.
        given: {name: weight}.

    Raises:
        InvalidArgumentError: no number of at least 0, or exact ones whose sum does not fit.
    """
    decimals = {name: _decimal(f"{what}[{name!r}]", each) for name, each in given.items()}
    places = max([0, *(-_exponent(each) for each in decimals.values())])
    whole = _divided({name: _scaled(each, places) for name, each in decimals.items()})
    total = sum(whole.values())
    if total < _MOST_SUM:
        return whole
    if not any(_is_float(each) for each in given.values()):
        raise InvalidArgumentError(
            f"{what}: the sum of the integers that stand in this ratio is beyond 2^62: divide them all by one number, "
            "or give fewer digits"
        )
    return _divided({name: (2 * each * _PARTS + total) // (2 * total) for name, each in whole.items()})


def _decimal(what: str, given: Any) -> Decimal:
    if np.ma.is_masked(given):
        raise InvalidArgumentError(f"{what}={shown(given)}: must be a number, and this one is masked")
    try:
        if not isinstance(given, (str, Decimal)) and not _is_float(given):
            return Decimal(index(what, given))
        number = Decimal(given) if isinstance(given, (str, Decimal)) else Decimal(_repr(given))
    except InvalidArgumentError:
        raise
    except Exception:  # a number's own conversion, which may raise anything, as a masked one's of NumPy does
        raise InvalidArgumentError(f"{what}={shown(given)}: must be a number, such as 0.25 or '0.25'") from None
    if not number.is_finite() or number < 0:
        raise InvalidArgumentError(f"{what}={shown(given)}: must be a finite number of at least 0")
    if number and abs(number.adjusted()) > _MOST_EXPONENT:
        raise InvalidArgumentError(f"{what}={shown(given)}: must be from 1e-{_MOST_EXPONENT} to 1e{_MOST_EXPONENT}")
    if (digits := len(number.as_tuple().digits)) > _MOST_DIGITS:
        raise InvalidArgumentError(f"{what}={shown(given)}: {digits:,} digits: must have at most {_MOST_DIGITS:,}")
    return number


def _is_float(given: Any) -> bool:
    """True of floats and of what converts to one, as NumPy's and a tensor of one number."""
    if isinstance(given, (bool, str, Decimal)):
        return False
    try:
        operator.index(given)
    except TypeError:
        return isinstance(given, SupportsFloat)
    return False


def _repr(given: Any) -> str:
    """The shortest text of a float of its own precision: "0.7" of NumPy's float32, too."""
    return str(given) if type(given).__module__ == "numpy" and given.ndim == 0 else repr(float(given))


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return exponent if isinstance(exponent, int) and number else 0


def _scaled(number: Decimal, places: int) -> int:
    """number * 10^places, which is an integer: no context rounds it."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    return int("".join(map(str, digits)) or "0") * 10 ** (places + exponent) if number else 0


def _divided(whole: dict[str, int]) -> dict[str, int]:
    common = math.gcd(*whole.values())
    return {name: each // common for name, each in whole.items()} if common > 1 else whole
