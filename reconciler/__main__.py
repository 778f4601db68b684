"""``python -m reconciler``."""

from reconciler.cli.main import main

if __name__ == "__main__":
    main()
