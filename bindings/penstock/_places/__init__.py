"""Where bytes lie: paths, addresses, servers, stores of users, uploads, scratch folders."""
