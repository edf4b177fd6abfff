"""`python -m bench`: every speed bench, one after the other."""

from bench import flood, inline, sharing, worker

if __name__ == "__main__":
    inline.main()
    print()
    worker.main()
    print()
    flood.main()
    print()
    sharing.main()
