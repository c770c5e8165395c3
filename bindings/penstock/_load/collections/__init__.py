"""Stores that are not ours: any collection that integers index, in the orders of penstock.

`planning` says which observations are read together, `reading` how a collection is indexed, `turns` by which thread;
`fetching` calls the hooks, `threads` and `processes` are where that happens, `loader` delivers.
"""
