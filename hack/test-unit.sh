#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs unit tests, under the race detector where that is cheap.
#
#   hack/test-unit.sh [-timeout 1h] PACKAGE...
#   RACE=all hack/test-unit.sh PACKAGE...       # the race detector for every package
#
# A test that links the scheduler or the client libraries costs minutes to build for the race detector from a cold cache;
# those run without, unless RACE=all. The race detector needs a C compiler; where there is none, everything runs without,
# and this says so.
set -eu
cd "$(dirname "$0")/.."

# Ends tests that hang. The slowest package takes five minutes on two cores, and twice as long on cores that are shared.
timeout=30m
if [ "$1" = -timeout ]; then
	timeout=$2
	shift 2
fi

# What a package's tests link: one line per test binary, "PACKAGE.test DEPENDENCY...".
binaries=$(go list -test -f '{{.ImportPath}} {{join .Deps " "}}' "$@" | grep '^[^ ]*\.test ' || true)
heavy=$(echo "$binaries" | awk '/ k8s.io\/client-go\/kubernetes/ || / k8s.io\/kubernetes\/pkg\/scheduler / { print substr($1, 1, length($1) - 5) }')
light=$(echo "$binaries" | awk '!(/ k8s.io\/client-go\/kubernetes/ || / k8s.io\/kubernetes\/pkg\/scheduler /) { print substr($1, 1, length($1) - 5) }')

compiler=$(go env CC)
if ! command -v "${compiler%% *}" >/dev/null; then
	echo "no C compiler found ($compiler): the tests run without the race detector"
	raced= plain="$light $heavy"
elif [ "${RACE:-}" = all ]; then
	raced="$light $heavy" plain=
else
	raced=$light plain=$heavy
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
