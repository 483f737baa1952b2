# Every command does its own set-up: as root on Debian or Ubuntu it installs what is missing, elsewhere it names it.
#
#   make              build the tools and applications: build/release/bin/headway, and headway-NAME beside it
#   make demo         build and run the main job: random updates of a table over all cores, direct against aggregated
#   make check        build what it runs and pass the tests, those of single layers under sanitizers
#   make check-long   all other tests: long ones, the second MPI, simulated machines, sanitized tests in release
#   make check-clang  build everything with Clang, warnings being errors, and run the tests of layers and pages
#   make wheel        build a wheel for Python: build/wheels/headway-*.whl
#   make check-python install the wheel in an empty environment and run the tests there that `make check` runs without
#                     a wheel: with 1, 2, 3 and 5 PEs, and of types
#   make check-bare   `make demo`, timed, on an empty Debian made for the purpose (root, debootstrap, a network)
#   make format       clang-format over all sources
#   make check-format fails if `make format` would change a file
#   make tidy         clang-tidy over all sources that are built here but tests; fails if it finds something
#   make site         build the documentation site in build/site; fails for a bad link
#   make clean        remove build/
#
# JOBS=N compiles with N jobs, TEST_JOBS=N runs N tests at a time, WERROR=ON makes warnings errors (CI does).

MAKEFLAGS += --no-print-directory
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
TEST_JOBS ?= 2
WERROR ?= OFF

build_in = cmake --build build/$(1) -j $(JOBS)
test_in = ctest --test-dir build/$(1) --output-on-failure --no-tests=error --output-log $(CURDIR)/build/$(1)/check.log

# Tests over MPICH have names with `mpich`: `check` tries one MPI, Open MPI.
second_mpi = mpich

# What `check-clang` runs: tests of layers, refusals of the compiler, programs, pages.
layers = base_test|headway_.*_test|must_not_compile\..*|layers.*
tests_with_clang = '^($(layers)|programs\..*\.(processes|threads)|readme_.*|links|house.*)$$'

# The static analyzer follows calls less deeply. Else it takes as long as all other checks together.
tidy_shallow = $(foreach word,-Xclang -analyzer-config -Xclang mode=shallow,--extra-arg=$(word))

# $(call sanitized,PRESET,which tests): builds and runs, in that preset, the tests that CMake lists for it.
define sanitized
	@scripts/configure $(1) HEADWAY_TESTS=ON HEADWAY_WERROR=$(WERROR)
	@$(call build_in,$(1)) --target headway_$(1)_tests
	@scripts/steps 'build $(1)'
	@$(call test_in,$(1)) -j $(TEST_JOBS) -L '^$(1)$$' $(2)
	@scripts/steps 'test $(1)'
endef

# $(call simulated,short or long): the same in the build for SimGrid's SMPI, where SimGrid is (the shell looks, after
# set-up).
define simulated
	@if command -v smpirun >/dev/null; then $(MAKE) check-smpi WHICH=$(1); \
	  else echo 'headway: no smpirun here, tests on simulated machines are skipped'; fi
endef

.PHONY: build demo check check-long check-smpi check-clang wheel check-python check-bare format check-format tidy site clean \
	help

build:
	@scripts/setup demo
	@scripts/configure release
	@$(call build_in,release) --target headway_programs

demo:
	@scripts/setup demo
	@scripts/configure release
	@$(call build_in,release) --target headway_demo
	@scripts/demo

check:
	@scripts/steps --begin
	@scripts/setup check
	@scripts/configure release HEADWAY_TESTS=ON HEADWAY_WERROR=$(WERROR)
	@ctest --test-dir build/release -N -LE '^long$$' | scripts/hold-seconds --names
	@scripts/steps 'set up and configure'
	@$(call build_in,release)
	@scripts/steps 'build release'
	@$(call test_in,release) -j $(TEST_JOBS) -LE '^(long|sanitized)$$' -E $(second_mpi)
	@scripts/steps 'test release'
	$(call sanitized,asan,-LE '^long$$' -E $(second_mpi))
	$(call sanitized,tsan,-LE '^long$$' -E $(second_mpi))
	@scripts/hold-seconds $(foreach preset,release asan tsan,build/$(preset)/check.log)
	@scripts/steps --end

# What `check` leaves out runs here: long tests, sanitized ones as they are released, the second MPI, simulated
# machines.
check-long:
	@scripts/steps --begin
	@scripts/setup check
	@scripts/configure release HEADWAY_TESTS=ON HEADWAY_WERROR=$(WERROR)
	@$(call build_in,release) --target all headway_long
	@scripts/steps 'build release'
	@$(call test_in,release) -j $(TEST_JOBS) -L '^sanitized$$' -LE '^long$$'
	@$(call test_in,release) -j $(TEST_JOBS) -R $(second_mpi) -LE '^(long|sanitized)$$'
	@$(call test_in,release) -L '^long$$' -LE '^sanitized$$'
	@scripts/steps 'test release'
	$(call sanitized,asan,-L '^long$$')
	$(call simulated,short)
	$(call simulated,long)
	@scripts/steps --end

check-smpi:
	$(call sanitized,smpi,$(if $(filter long,$(WHICH)),-L,-LE) '^long$$')

# Builds all that `check` builds, and the headers alone.
check-clang:
	@scripts/steps --begin
	@scripts/setup check-clang
	@CXX=$$(scripts/setup --clang) scripts/configure clang HEADWAY_TESTS=ON HEADWAY_WERROR=ON
	@scripts/steps 'set up and configure'
	@$(call build_in,clang) --target all headway_long
	@scripts/steps 'build clang'
	@$(call test_in,clang) -j $(TEST_JOBS) -R $(tests_with_clang) -LE '^long$$' -E $(second_mpi)
	@scripts/steps 'test clang'
	@scripts/steps --end

wheel:
	@JOBS=$(JOBS) scripts/wheel

check-python: wheel
	@scripts/wheel --check

check-bare:
	@scripts/check-bare demo

format:
	@scripts/setup format
	@scripts/format

check-format:
	@scripts/setup format
	@scripts/format --check

tidy:
	@scripts/setup tidy
	@CXX=$$(scripts/setup --clang) scripts/configure clang HEADWAY_TESTS=ON HEADWAY_WERROR=ON
	@sed -n 's|^ *"file": "$(CURDIR)/\(.*\)",\{0,1\}$$|\1|p' build/clang/compile_commands.json | sort -u | \
	  grep -E '^(src|apps|bench|tools)/' | grep -v '_test\.cpp$$' | \
	  xargs -P $(JOBS) -n 1 $$(scripts/setup --tidy) -p build/clang --quiet --warnings-as-errors='*' \
	  $(tidy_shallow)

site:
	@scripts/setup site
	@scripts/site

clean:
	rm -rf build

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile
