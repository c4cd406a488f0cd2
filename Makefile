# Everything a developer or a user of a checkout runs. Nothing needs to be activated or installed
# globally: the first target that needs it makes .venv.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# Where it is set, each program that a test starts would compile the package again, and each worker the tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-quick test-times test-unit test-embedded test-alone test-real test-matrix test-pythons test-spark-versions test-clients test-injected-errors test-registry soak soak-chaos coverage check lint format types layers prose docs wheel wheel-pythons release-check generated clean \
	bench bench-imports bench-records bench-produce bench-consume bench-latency bench-idle bench-aio bench-cluster bench-spark

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1: /p' $(MAKEFILE_LIST) | column -t -s :

$(INSTALLED): setup.py pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[dev,docs]'
	if command -v krb5-config >/dev/null; then $(BIN)/pip install --quiet --editable '.[gssapi]'; fi  # has to be compiled
	touch $@

demo: $(INSTALLED)  ## run the main job once and show it
	@$(BIN)/python -m kafka demo

# Tests mostly wait, so three runs go on beside each other, two of them in several processes. Each shows its output at its
# end, in one piece, and its progress at once, through descriptor 9 (test/progress.py). Each has a cache of its own; all
# are run to their ends, and one that fails fails the whole.
test: $(INSTALLED)  ## all tests: unit, embedded and, where Java and Maven are, against real Kafka
	@echo "Running test-unit, test-embedded and test-real beside each other; each is shown when it has ended."
	@TEST_PROGRESS_FD=9 $(MAKE) --no-print-directory --jobs=3 --keep-going $(IN_ONE_PIECE) \
		test-unit test-embedded test-real 9>&1 || \
		{ echo "Failed, see above:"; grep -hs ': true' .pytest_cache/test-*/v/cache/lastfailed; exit 1; }
	@$(MAKE) --no-print-directory test-alone

# Since make 4.0; macOS has 3.81.
IN_ONE_PIECE := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

PYTEST = TEST_PROGRESS_NAME=$@ $(BIN)/python -m pytest -p test.progress -o cache_dir=.pytest_cache/$@

test-unit: $(INSTALLED)  ## the tests that need no socket, and every example
	$(PYTEST) test/unit
	$(PYTEST) --doctest-modules kafka docs README.rst

test-quick: $(INSTALLED)  ## unit tests without the slow ones, and every example, on all processors
	$(PYTEST) -n auto -m 'not soak and not slow' test/unit
	$(PYTEST) -n auto --doctest-modules kafka docs README.rst

test-times: $(INSTALLED)  ## write test/unit/slow.txt, the tests that test-quick leaves out, by what they take now
	$(BIN)/python -m pytest -p test.slow test/unit

coverage: $(INSTALLED)  ## which lines the unit and embedded tests run, in .coverage and on the screen
	$(BIN)/coverage run -m pytest test/unit test/embedded
	$(BIN)/coverage report --skip-covered --sort=cover

# They wait for three quarters of their time: four processes leave room on two processors when the other tiers have ended.
test-embedded: $(INSTALLED)  ## the tests against the embedded broker
	$(PYTEST) -n 4 --dist loadfile -m 'not soak and not alone' test/embedded

# In this order: the first one loads and compiles what the others measure.
MEASURED := $(addprefix test/embedded/,cli/test_promises.py cli/test_exporter.py admin/test_promises.py aio/test_fairness.py)
test-alone: $(INSTALLED)  ## the tests that measure what a processor does, when nothing else runs
	$(PYTEST) -p no:randomly -m 'alone and not soak' $(MEASURED)

test-real: $(INSTALLED)  ## the tests against the newest Apache Kafka
	$(PYTEST) -n 2 --dist loadfile test/real

test-matrix: $(INSTALLED)  ## the tests against every supported release of Apache Kafka
	$(BIN)/pytest test/real --matrix -m matrix

PYTHONS ?= py310,py311,py312,py313,py314
test-pythons: $(INSTALLED)  ## unit tests, examples and embedded tests on each supported Python that is on the path
	$(BIN)/tox run -e $(PYTHONS)

test-spark-versions: $(INSTALLED)  ## Spark 4.0 to 4.2, Spark Connect, and what the pages install, in environments of their own
	$(BIN)/pytest -m soak -rP test/real/spark/test_versions.py test/real/docs/test_blocks.py

test-registry: $(INSTALLED)  ## a real schema registry in two releases, Apache Kafka, confluent-kafka's serializers, Confluent's of Java
	$(BIN)/pytest -m soak -rP test/real/schema_registry

test-clients: $(INSTALLED)  ## seven other clients and Kafka's tools against the embedded broker; the facts of Java's Admin
	$(BIN)/pytest -m soak -rP -p no:randomly $(addprefix test/real/,broker/test_clients.py broker/test_tools.py admin/test_java.py)

test-injected-errors: $(INSTALLED)  ## three clients under each injected error, on the embedded broker and on Apache Kafka
	$(BIN)/pytest -m soak -rP -p no:randomly test/real/broker/injected

soak: $(INSTALLED)  ## random histories against the embedded broker; seeds are printed
	$(BIN)/pytest -m soak test/embedded

soak-chaos: $(INSTALLED)  ## clients of Apache Kafka under kill -9, hangs and bad networks; PUREKAFKA_SECONDS and _SEED
	$(BIN)/pytest -m soak -rP test/real/chaos

check: lint types layers prose docs wheel  ## everything that is checked besides the tests

lint: $(INSTALLED)  ## style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(INSTALLED)  ## put everything into shape
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format --quiet .

types: $(INSTALLED)  ## mypy --strict
	$(BIN)/mypy

layers: $(INSTALLED)  ## imports point down only
	$(BIN)/lint-imports --no-cache
	$(BIN)/lint-imports --no-cache --config .import-circles.toml

prose: $(INSTALLED)  ## plain English in documentation, docstrings, comments and messages
	$(BIN)/python tools/check_prose.py

docs: $(INSTALLED)  ## the documentation; a warning is an error
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

wheel: $(INSTALLED)  ## a wheel, installed into an empty environment and used from elsewhere
	$(BIN)/python tools/check_wheel.py

release-check: wheel-pythons  ## what a release needs: version, changes, and wheel-pythons
	$(BIN)/python tools/check_release.py

WHEEL_PYTHONS ?= python3.10 python3.11 python3.12 python3.13
wheel-pythons: $(INSTALLED)  ## wheel and sdist: twine, empty environments of WHEEL_PYTHONS, and beside kafka-python
	$(BIN)/python tools/check_wheel.py --complete $(WHEEL_PYTHONS)

generated: $(INSTALLED)  ## write again what the programs in tools/ generate from committed tables
	$(BIN)/python tools/generate_errors.py
	$(BIN)/python tools/generate_releases.py
	$(BIN)/python tools/generate_api_docs.py
	$(BIN)/python tools/generate_config_docs.py
	$(BIN)/python tools/generate_options.py
	$(BIN)/python tools/generate_cli_docs.py
	$(BIN)/python tools/generate_speed_table.py

BENCH = $(BIN)/python -m benchmarks
bench: $(INSTALLED)  ## every benchmark against the other libraries; takes hours
	$(BENCH) imports records produce consume groups latency idle aio spark

bench-imports: $(INSTALLED)  ## importing the clients
	$(BENCH) imports

bench-records: $(INSTALLED)  ## building and reading of batches
	$(BENCH) records

bench-produce: $(INSTALLED)  ## send() to a broker
	$(BENCH) produce

bench-consume: $(INSTALLED)  ## reading from a broker, alone and in groups
	$(BENCH) consume groups

bench-latency: $(INSTALLED)  ## the time of one record, from send() to poll()
	$(BENCH) latency

bench-idle: $(INSTALLED)  ## what clients cost that nobody uses
	$(BENCH) idle

bench-aio: $(INSTALLED)  ## the asyncio clients beside aiokafka
	$(BENCH) aio

bench-cluster: $(INSTALLED)  ## clients of 100 brokers and 10,000 topics, a group of 200 members
	$(BIN)/python -m benchmarks.cluster

bench-spark: $(INSTALLED)  ## the Spark source beside Spark's own connector
	$(BENCH) spark

clean:  ## forget what was built; keeps .venv
	rm -rf build dist *.egg-info docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis
