"""Files that Python fetches: through obstore, through fsspec, and of a user's own object."""

from penstock._places.stores.addresses import addresses_of, far_reader, is_in_store, places_of, stores_of

__all__ = ["addresses_of", "far_reader", "is_in_store", "places_of", "stores_of"]
