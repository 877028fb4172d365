#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzz target for some seconds: `go test` alone only repeats the inputs that are stored.
#
#   hack/test-fuzz.sh 5s
set -eu
cd "$(dirname "$0")/.."

output=$(mktemp)
trap 'rm -f "$output"' EXIT
trap 'exit 1' INT TERM
grep -rn --include='*_test.go' -E '^func Fuzz[A-Za-z]*\(f \*testing\.F\)' cmd pkg test |
	sed -E 's/^(.*)\/[^/]*_test\.go:[0-9]+:func (Fuzz[A-Za-z]*)\(.*/.\/\1 \2/' |
	while read -r package target; do
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" -parallel 2 "$package" >"$output" 2>&1 || {
			cat "$output"
			exit 1
		}
		echo "$target: $(tail -n 1 "$output")"
	done
