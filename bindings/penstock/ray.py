"""Many machines, on Ray: where tasks run, where a Ray Dataset is written to, and one that is read.

`penstock write --ray` and `penstock import --ray` run on `Cluster`. Needs the extra `ray`.
"""

from penstock._from.rows.cluster import Cluster
from penstock._from.rows.missing import needed
from penstock._from.rows.reading import read

needed()  # now: a class of Ray's is the base of the next

from penstock._from.rows.sink import Datasink  # noqa: E402

__all__ = ["Cluster", "Datasink", "read"]
