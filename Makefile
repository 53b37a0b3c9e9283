# CONTRIBUTING.md says what the targets are for.
GO      ?= go
FUZZTIME ?= 20s
LINT    := $(GO) tool -modfile=tools/lint/go.mod golangci-lint

# test/browser has hdsd itself from the folder above, which go mod verify does not understand.
MODULES := . tools tools/lint tools/etcd test/browser test/istio

# As the binary of a release is compiled (tools/release): without the page of gRPC's traces,
# which would keep every method of every message.
COMPILE := -trimpath -tags=grpcnotrace

.PHONY: page build demo test lint vet modules bench microbench fuzz sim soak upgrades corpus release generate clean

build:
	CGO_ENABLED=0 $(GO) build $(COMPILE) -ldflags="-s -w" -buildvcs=auto -o bin/hdsd ./cmd/hdsd

# REPLICAS=3 for three hdsd with an etcd; ONCE=1 for one round.
demo: build $(if $(REPLICAS),bin/etcd)
	bin/hdsd demo $(if $(ONCE),--once) $(if $(REPLICAS),--replicas $(REPLICAS) --etcd bin/etcd)

# The server for demonstrations and tests; hdsd has no part of it.
bin/etcd: tools/etcd/go.mod
	cd tools/etcd && CGO_ENABLED=0 $(GO) build -trimpath -tags=grpcnotrace -ldflags="-s -w" -o ../../bin/etcd go.etcd.io/etcd/server/v3

test:
	GO=$(GO) test/all

# The modules are mostly downloads, so they go beside the rest.
lint:
	@$(MAKE) --no-print-directory -j2 --output-sync=line vet modules

# As build compiles, which then need not do it again.
vet: export CGO_ENABLED = 0
vet: export GOFLAGS = $(COMPILE)
vet:
	$(GO) vet ./...
	$(LINT) run ./...
	cd tools && $(GO) vet ./...
	cd test/browser && $(GO) vet ./...
	cd test/istio && $(GO) vet .

modules:
	@set -e; for module in $(MODULES); do (cd $$module && $(GO) mod tidy -diff); done
	@set -e; for module in $(filter-out test/browser,$(MODULES)); do (cd $$module && $(GO) mod verify); done

# hdsd beside floors and peers: prints a table, and writes docs/reference/performance.md unless
# BASE or ONLY is set. FULL=1 for large sizes; BASE=rev compares with that revision instead, and
# fails where hdsd is slower; ONLY=words for the scenarios with these words in their name; TURNS=n
# for n turns of each. Nothing else should use the machine.
bench: build
	$(GO) build -o bin/bench ./test/bench
	bin/bench $(if $(FULL),-full) $(if $(BASE),-base '$(BASE)') $(if $(ONLY),-only '$(ONLY)') $(if $(TURNS),-turns '$(TURNS)')

microbench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

# Each fuzz target for FUZZTIME, one after the other. Making a find smaller would take
# up to a minute, in which nothing new is tried.
fuzz:
	@set -e; for package in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "$$package $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x $$package; \
	  done; \
	done

# How good the verdicts are: prints tables, writes docs/internals/judgement.md and its plots.
sim:
	$(GO) run ./test/sim/judgement

# What hdsd makes of other projects' configuration: prints tables, writes docs/internals/corpus.md.
corpus: build
	cd tools && $(GO) run ./corpus

# The Go code and the OpenAPI document of proto/ and the list of Envoy's
# messages, into gen/, and the man pages.
generate:
	cd tools && $(GO) run ./protogen .. && $(GO) run ./envoytypes .. ../internal/envoytypes
	rm -rf docs/man
	$(GO) run ./cmd/hdsd man docs/man

# The page's files, from page/src into page/dist. Needs node; nothing else does.
page:
	mkdir -p .cache/page && rm -rf .cache/page/src && cp -r page/package.json page/package-lock.json page/build.mjs page/src .cache/page/
	cd .cache/page && npm ci --no-audit --no-fund && npm run build
	cp .cache/page/dist/* page/dist/

clean:
	rm -rf bin

# Hours of faults that a seed draws (SOAK=10m for less), then attacks at their full size, the gRPC
# clients of all languages, and generated clusters for three releases of Envoy.
soak:
	HDSD_RACE=1 $(GO) test -race -tags=soak -timeout 1h ./test/hostile ./test/scale $$(sed '/^#/d; s,^,./,' test/serial test/covered) \
	  $$(grep -rl '^//go:build !race' --include='*_test.go' . | xargs dirname | sort -u)
	cd tools && $(GO) test -race ./...
	SOAK=$${SOAK:-1h} $(GO) test -race -tags=soak ./eds -timeout 1h
	SOAK=$${SOAK:-1h} $(GO) test ./test/scale -run TestSoak -v -timeout 3h
	SOAK=$${SOAK:-1h} $(GO) test ./test/crash -run 'TestKill9|TestPowerLoss|TestAFullDisk' -v -timeout 1h
	SOAK=$${SOAK:-1h} $(GO) test ./test/replicas -v -timeout 1h
	HDSD_SCALE=full $(GO) test ./test/scale -run 'Many|TestTrouble|TestKill9' -v -timeout 1h
	HDSD_SCALE=kills $(GO) test ./test/scale -run TestKill9 -v -timeout 1h
	PROXYLESS=all $(GO) test ./test/proxyless -v -timeout 30m
	SERVERS=java $(GO) test ./test/servers -v -timeout 20m
	HDSD_ALONE=full $(GO) test ./test/alone -v -timeout 1h
	SOAK=$${SOAK:-1h} $(GO) test ./test/envoy -run TestWhatEnvoyCannotBuild -v
	$(GO) test ./test/envoy -run TestAnEnvoyTakesWhatIsPublished -v -timeout 30m -published-runs 500 -published-versions 1.36.4,1.38.3,1.40.0
	cd tools && BUILDS=cold $(GO) test ./release -v
	FLOODS=full $(GO) test ./test/hostile -run TestFloodsAreBounded -v -timeout 1h

# Three replicas of an older revision become those of this one under load, and go back: FROM=rev. SOAK=1 for longer.
upgrades:
	rm -rf .cache/previous && mkdir -p .cache/previous
	git archive '$(or $(FROM),$(error FROM=rev names the older revision))' | tar -x -C .cache/previous
	cd .cache/previous && CGO_ENABLED=0 $(GO) build $(COMPILE) -ldflags="-s -w" -buildvcs=false -o ../hdsd-previous ./cmd/hdsd
	rm -rf .cache/previous
	HDSD_PREVIOUS='$(CURDIR)/.cache/hdsd-previous' $(GO) test ./test/replicas -run TestUpgrade -v -count=1 -timeout 30m

# Archives for others, with licences and a bill of materials, into bin/release.
release:
	cd tools && $(GO) run ./release .. ../bin/release
