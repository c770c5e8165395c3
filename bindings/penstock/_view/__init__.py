"""The page that `penstock view` serves: data as JSON, a small server, and the page's own files."""
