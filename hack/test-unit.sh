#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs unit tests, under the race detector where it can find something and is cheap.
#
#   hack/test-unit.sh [-timeout 1h] PACKAGE...
#   RACE=all hack/test-unit.sh PACKAGE...       # the race detector for every package
#
# Pure packages start no goroutine, which their test TestPure checks, and run without. So does a test that links the
# scheduler or the client libraries, which costs minutes to build for the race detector from a cold cache. The race
# detector needs a C compiler; where there is none, everything runs without, and this says so.
set -eu
cd "$(dirname "$0")/.."

# Ends tests that hang. The slowest package takes five minutes on two cores, beside the integration tests.
timeout=30m
if [ "$1" = -timeout ]; then
	timeout=$2
	shift 2
fi

# What a package's tests link: one line per test binary, "PACKAGE.test DEPENDENCY...".
linked=$(go list -test -f '{{.ImportPath}} {{join .Deps " "}}' "$@" | grep '^[^ ]*\.test ' || true)
pure=$(go list -f '{{$p := .ImportPath}}{{range .TestGoFiles}}{{if eq . "purity_test.go"}}{{$p}}{{end}}{{end}}{{range .XTestGoFiles}}{{if eq . "purity_test.go"}}{{$p}}{{end}}{{end}}' "$@")

raced=
plain=
compiler=$(go env CC)
if ! command -v "${compiler%% *}" >/dev/null; then
	echo "no C compiler found ($compiler): the tests run without the race detector"
	plain=$(echo "$linked" | sed 's/\.test .*//')
elif [ "${RACE:-}" = all ]; then
	raced=$(echo "$linked" | sed 's/\.test .*//')
else
	without=$(echo "$linked" | awk '/ k8s.io\/client-go\/kubernetes/ || / k8s.io\/kubernetes\/pkg\/scheduler / { print substr($1, 1, length($1) - 5) }')
	plain=$(printf '%s\n' "$without" "$pure" | sort -u)
	raced=$(echo "$linked" | sed 's/\.test .*//' | grep -vxF "$plain" || true)
fi

status=0
# shellcheck disable=SC2086 # lists of packages
if [ -n "$raced" ]; then
	echo "go test -race: $(echo $raced | wc -w) packages"
	CGO_ENABLED=1 go test -race -timeout "$timeout" $raced || status=1
fi
# shellcheck disable=SC2086
if [ -n "$plain" ]; then
	echo "go test: $(echo $plain | wc -w) packages"
	go test -timeout "$timeout" $plain || status=1
fi
exit $status
