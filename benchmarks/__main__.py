"""`make bench`: every benchmark after the other, each with its own stored rows. Run it on an otherwise idle machine."""

from benchmarks import cost, long_axes, short_axes

if __name__ == "__main__":
    cost.main()
    short_axes.main()
    long_axes.main()
