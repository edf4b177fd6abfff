"""A request and its answer for every scorer, with the judge's replies as they were recorded once."""
