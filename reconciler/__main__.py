"""``python -m reconciler``."""

from reconciler.cli.entry import main

if __name__ == "__main__":
    main()
