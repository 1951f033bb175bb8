# Two commands matter: `make demo` shows what ssno does, `make test` checks that it does it. Both install first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: install demo test verify bench docs docs-serve dist clean
.DEFAULT_GOAL := test

install: $(STAMP)

# torch comes first and by pip: anything that depends on torch must find this exact build in place.
$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ssno needs Python 3.11 or newer: make install PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $(STAMP)

demo: install
	$(BIN)/ssno demo

# Tests are small: one thread each, two side by side, is faster than two threads that wait for each other. The pretended
# GPU wants a process of its own (PyTorch counts devices once, at the first backward pass) and runs beside the others,
# after the types.
test: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	export OMP_NUM_THREADS=1; mkdir -p build; \
	( $(BIN)/mypy; types=$$?; $(BIN)/python -m pytest tests/devices && exit $$types ) > build/beside.txt 2>&1 & beside=$$!; \
	$(BIN)/python -m pytest -n 2 --dist worksteal --ignore tests/devices; others=$$?; \
	wait $$beside; pretended=$$?; cat build/beside.txt; exit $$((others + pretended))

# Hours, in pieces of any length: stopped, it goes on where it was.
verify: install
	$(BIN)/python -m verify
	$(BIN)/python -m verify --page

bench: install
	$(BIN)/python -m benchmarks

# The documentation, into site/: generated pages first, then a strict build. `docs-serve` also shows it on a local address.
docs: install
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(BIN)/python docs/scripts/site.py

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory site

# The wheel, into dist/.
dist: install
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache build dist site docs/gallery docs/live docs/reference
