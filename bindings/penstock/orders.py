"""Orders: which observation stands at which position.

An order here is a small description, made before the dataset's size and the seed are known; the loader makes the native
order from it. Every order is a pure function of (seed, position): nothing is shuffled, buffered or communicated.
`Weighted` and `Balanced` draw, and `Custom` is your own: an observation may come more than once an epoch, or never.
"""

from penstock._load.orders import Balanced, Blocks, Bucketed, Custom, Order, Sequential, Uniform, Weighted, resolve

__all__ = ["Balanced", "Blocks", "Bucketed", "Custom", "Order", "Sequential", "Uniform", "Weighted", "resolve"]
