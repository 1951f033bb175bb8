"""Long campaigns that may be stopped anywhere, and the page of their results: `make verify`."""
