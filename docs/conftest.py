"""The scripts of the site are no tests: their results are tested in tests/docs."""

collect_ignore_glob = ["*.py"]
