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
			# Go before 1.27 now and then takes the end of the time for an error (golang/go#75804). It writes no input then.
			input=$(sed -n 's/^ *Failing input written to //p' "$output")
			if [ "$input" ] || ! grep -qx ' *context deadline exceeded' "$output"; then
				cat "$output"
				if [ "$input" ]; then cat "$package/$input"; fi # the machine may not be there later
				exit 1
			fi
			echo "ended late" >"$output"
		}
		echo "$target: $(tail -n 1 "$output")"
	done
