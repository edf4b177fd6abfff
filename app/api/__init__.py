"""HTTP: routes parse, call one function of app/runs and shape its answer."""
