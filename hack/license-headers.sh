#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Lists the Go files and shell scripts of the repository without a license header, and fails if there are any.
#
#   hack/license-headers.sh          # list them
#   hack/license-headers.sh --fix    # add the header to them
#
# The header is one line, at the top of a Go file and below the first line of a script. Generated files have the header of
# hack/boilerplate.go.txt. vendor/ and testdata/ are left alone.
set -eu
cd "$(dirname "$0")/.."

header="SPDX-License-Identifier: Apache-2.0"

without_header() {
	git ls-files --cached --others --exclude-standard -- '*.go' '*.sh' .ci/run ':(exclude)vendor' ':(exclude,glob)**/testdata/**' |
		while read -r file; do
			[ -f "$file" ] || continue # deleted, not yet committed
			head -n 5 "$file" | grep -q "^\(//\|#\) $header\$" || echo "$file"
		done
}

add_header() { # file
	case $1 in
	*.go) awk -v header="// $header" 'NR == 1 { print header; print "" } { print }' "$1" ;;
	# An empty comment line separates the header from a comment that follows.
	*) awk -v header="# $header" 'NR == 2 { print header; if ($0 ~ /^#/) print "#" } { print }' "$1" ;;
	esac >"$1.new"
	cat "$1.new" >"$1" # keeps the file's mode
	rm "$1.new"
}

case ${1:-} in
--fix)
	without_header | while read -r file; do add_header "$file"; done
	;;
"")
	missing=$(without_header)
	[ -z "$missing" ] && exit 0
	echo "$missing" | sed 's/$/ has no license header/'
	exit 1
	;;
*)
	echo "usage: $0 [--fix]" >&2
	exit 2
	;;
esac
