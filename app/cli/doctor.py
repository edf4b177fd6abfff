def doctor() -> None:
    """Later."""
