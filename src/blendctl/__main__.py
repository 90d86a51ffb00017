"""Run the command line as `python -m blendctl`."""

from blendctl.cli import main

if __name__ == "__main__":
    main()
