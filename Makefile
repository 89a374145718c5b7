# What can be made here; script/demo and script/test do the set-up of a bare
# machine first and then call this file.
#
#   make           build ./weir
#   make demo      a home gateway in network namespaces, shown and measured
#   make test      all tests of this machine's kernel (root; under 10 minutes)
#   make bench     weir, nftables and the kernel side by side
#   make performance   docs/performance.md, performance-rules.md and their charts, measured here
#   make install   into DESTDIR and PREFIX
#
# For whoever works on weir:
#
#   make generate      rebuild generated files (needs clang 19)
#   make lint          Go and C, warnings are errors (needs clang 19)
#   make test-kernels  the same programs on another kernel, emulated
#   make test-long     dataplane and model on PACKETS random packets; weir killed
#                      at every step; every story with packets looked at twice;
#                      set spread auto under a load that fills a core
#   make fuzz          fuzz targets, FUZZTIME each
#   make clean

PREFIX  ?= /usr/local
DESTDIR ?=
BENCH   ?= forward
FUZZTIME ?= 1m
PACKETS  ?= 10000000

# The C compiler of the committed BPF objects. Another release makes other
# bytes, so there is no fallback.
CLANG      := clang-19
LLVM_STRIP := llvm-strip-19
# Paths in the debug information are those of the tree, wherever it stands.
BPF_CFLAGS := -O2 -mcpu=v3 -Wall -Wextra -Werror -nostdinc "-ffile-prefix-map=$(CURDIR)=." \
	"-I$(CURDIR)/bpf/include" "-I$(CURDIR)/bpf"

GOLANGCI_VERSION := v2.15.0
BUILD := .build
GOLANGCI := $(BUILD)/golangci-lint-$(GOLANGCI_VERSION)

# Go: the machine's where it is new enough, else what script/bootstrap fetched.
ifndef GO
GO := $(shell ./script/find-go)
endif
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(GOFLAGS) -buildvcs=false -trimpath)
ifndef HOME
export HOME := $(shell getent passwd "$$(id -u)" | cut -d: -f6)
endif

VERSION := $(shell ./script/version)
LDFLAGS := -s -w -X weir/internal/cli.release=$(VERSION)

.PHONY: all
all: weir

# Go knows what is up to date; make does not.
.PHONY: weir
weir: need-go
	$(GO) build -ldflags '$(LDFLAGS)' -o weir ./cmd/weir

.PHONY: need-go
need-go:
	@test -n '$(GO)' || { echo 'make: no Go that is new enough (go.mod); script/bootstrap installs one' >&2; exit 2; }

.PHONY: demo
demo: weir
	./weir demo

.PHONY: bench
bench: weir
	./weir bench $(BENCH)
	./weir bench language

# The pages of the documentation with their charts, about five minutes each. They
# are measured on a quiet machine: on a busy one the control fails, the page says
# so, and make fails. The two are separate runs, so that one that is disturbed does
# not take the verdicts from the other. Charts that a new page has no more go; if
# there is no new page all stay.
PERFORMANCE       := --flows 1000,65536 --flame
PERFORMANCE_RULES := --rules 0,100,1000 --paths nft,nft-nat,weir,weir-nat
.PHONY: performance performance-connections performance-rules
performance: performance-connections performance-rules

# $(call measure,FLAGS,PAGE,CHARTS)
define measure
	@mkdir -p $(3) && touch $(3)/.begun
	./weir bench forward $(1) --markdown $(2) --svg $(3); status=$$?; \
	if [ $(2) -nt $(3)/.begun ]; then find $(3) -name '*.svg' ! -newer $(3)/.begun -delete; fi; \
	rm -f $(3)/.begun; exit $$status
endef

performance-connections: weir
	$(call measure,$(PERFORMANCE),docs/performance.md,docs/performance/charts)

performance-rules: weir
	$(call measure,$(PERFORMANCE_RULES),docs/performance-rules.md,docs/performance/charts-rules)

# Three jobs at a time: the stories, the benchmarks, and all other packages. Stories
# mostly wait, so more of them run at a time than there are cores. The benchmarks run one
# package after the other, because they would disturb each other. The other packages give
# way to both (nice). Go's own small vet is left out: make lint runs the whole one. What
# fails beside the others runs once more at the end, alone.
.PHONY: test test-stories test-bench test-packages test-again
TEST_JOBS := test-stories test-bench test-packages
TEST_LISTS := $(TEST_JOBS:%=.build/failed-%)

test: weir
	$(MAKE) --no-print-directory -j3 $(TEST_JOBS)
	$(MAKE) --no-print-directory test-again

test-again: need-go
	script/go-test-again $(TEST_LISTS) -- $(GO_TEST)

GO_TEST := env WEIR_BINARY='$(CURDIR)/weir' $(GO) test -count=1 -vet=off -timeout 40m
LISTED_TEST = @mkdir -p .build; script/go-test .build/failed-$@ $(GO_TEST)

STORIES_AT_ONCE := $(shell expr 1 + 2 '*' "$$(nproc)")

test-stories: weir
	$(LISTED_TEST) -parallel $(STORIES_AT_ONCE) ./test

# Tests that mostly wait run in parallel within a package, more of them than there are
# cores.
test-bench: weir
	$(LISTED_TEST) -p 1 -parallel 8 ./internal/bench/...

test-packages: weir
	@mkdir -p .build; script/go-test .build/failed-$@ nice -n 5 $(GO_TEST) -p 1 $$($(GO) list ./... | grep -vx -e weir/test -e 'weir/internal/bench/.*')

# Another seed each time; a failure prints it, and WEIR_RANDOM_SEED repeats it.
.PHONY: test-long
test-long: weir
	WEIR_RANDOM_SEED=$${WEIR_RANDOM_SEED:-$$(date +%s)} WEIR_RANDOM_PACKETS=$(PACKETS) \
		$(GO) test -count=1 -timeout 60m -v -run 'TestRandom$$' ./internal/fw/dataplane
	WEIR_BINARY='$(CURDIR)/weir' WEIR_KILL_EVERY_STEP=1 \
		$(GO) test -count=1 -timeout 120m -v -run 'TestKilledBetweenTwoChanges$$' ./test
	WEIR_BINARY='$(CURDIR)/weir' WEIR_TEST_PREFETCH=on $(GO) test -count=1 -timeout 60m ./test
	WEIR_BINARY='$(CURDIR)/weir' WEIR_TEST_SPREAD_LOAD=1 $(GO) test -count=1 -timeout 10m -v -run 'TestSpreadAuto$$' ./test

.PHONY: test-kernels
test-kernels: weir
	test/kernels/run

.PHONY: fuzz
fuzz: need-go
	script/fuzz '$(GO)' '$(FUZZTIME)'

# The largest objects are compiled beside each other. No generator needs what another one makes.
.PHONY: generate generate-xdp generate-tc generate-layout generate-others
GENERATE = BPF2GO_CC=$(CLANG) BPF2GO_STRIP=$(LLVM_STRIP) BPF2GO_CFLAGS='$(BPF_CFLAGS)' $(GO) generate

generate: need-go need-clang
	@$(GO) tool -n bpf2go >/dev/null # built once
	@$(MAKE) --no-print-directory -j"$$(nproc)" generate-xdp generate-tc generate-layout generate-others

generate-xdp generate-tc: generate-%:
	$(GENERATE) -run '/$*\.bpf\.c$$' ./internal/fw/dataplane

generate-layout:
	$(GENERATE) -run ' ./shuffle ' ./internal/fw/dataplane

generate-others:
	$(GENERATE) -skip '/(xdp|tc)\.bpf\.c$$| ./shuffle ' ./...

.PHONY: need-clang
need-clang:
	@for tool in $(CLANG) $(LLVM_STRIP); do \
		command -v $$tool >/dev/null || { \
			echo "make: $$tool is missing; it is in the packages clang-19 and llvm-19" >&2; exit 2; }; \
	done

.PHONY: lint lint-go lint-bpf lint-shell
lint: lint-go lint-bpf lint-shell

# golangci-lint runs go vet's checks, too (govet), but not on files that it leaves out.
lint-go: need-go $(GOLANGCI)
	$(GO) vet ./internal/vpn/device
	GOARCH=arm64 $(GO) build -o /dev/null ./cmd/weir
	$(GOLANGCI) run

$(GOLANGCI): | need-go
	GOBIN='$(CURDIR)/$(BUILD)' $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(BUILD)/golangci-lint $@

lint-bpf: need-clang
	@set -e; for source in $$(find bpf internal -name '*.bpf.c'); do \
		echo "$(CLANG) $$source"; \
		$(CLANG) -target bpfel -g $(BPF_CFLAGS) -c "$$source" -o /dev/null; \
	done

lint-shell:
	@command -v shellcheck >/dev/null || { echo 'make: shellcheck is missing; the package has the same name' >&2; exit 2; }
	shellcheck $$(script/shell-files)

.PHONY: install
install: weir
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/lib/systemd/system' \
		'$(DESTDIR)$(PREFIX)/share/man/man8' '$(DESTDIR)$(PREFIX)/share/doc/weir/examples' \
		'$(DESTDIR)$(PREFIX)/share/bash-completion/completions'
	install -m 0755 weir '$(DESTDIR)$(PREFIX)/bin/weir'
	for unit in weir.service weir-vpn.service; do \
		sed 's|@PREFIX@|$(PREFIX)|g' packaging/systemd/$$unit >"$(DESTDIR)$(PREFIX)/lib/systemd/system/$$unit"; \
	done
	install -m 0644 examples/*.conf examples/*.nft '$(DESTDIR)$(PREFIX)/share/doc/weir/examples'
	install -m 0755 examples/authlogin '$(DESTDIR)$(PREFIX)/share/doc/weir/examples'
	install -m 0644 README.md LICENSE docs/*.md '$(DESTDIR)$(PREFIX)/share/doc/weir'
	./weir completion bash >'$(DESTDIR)$(PREFIX)/share/bash-completion/completions/weir'
	$(GO) run ./internal/cli/manual '$(DESTDIR)$(PREFIX)/share/man/man8'

.PHONY: clean
clean:
	rm -rf weir dist $(BUILD)
