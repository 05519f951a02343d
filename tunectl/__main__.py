"""`python -m tunectl`: the same as the console script."""

from tunectl.cli.start import main

if __name__ == "__main__":
    main()
