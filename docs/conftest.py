"""Exclude the scripts of the site from collection; tests/docs tests their results."""

collect_ignore_glob = ["*.py"]
