#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Regenerates everything that is generated, in a copy, and compares: fails with what differs and the target to run. The
# tree itself is not touched, and need not be clean: what is compared is what lies there.
set -eu
cd "$(dirname "$0")/.."
root=$(pwd)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
failed=

check() { # what, command that repairs it, function that prints what differs
	printf '%-46s ' "$1"
	if "$3" >"$work/output" 2>&1 && [ ! -s "$work/output" ]; then
		echo ok
		return
	fi
	echo "DIFFERS: run \`$2\`"
	sed 's/^/    /' "$work/output"
	failed=yes
}

# The copy has every file that git knows or would take, but vendor/, which is only read.
copy=$work/copy
git ls-files --cached --others --exclude-standard -- . ':(exclude)vendor' | while read -r file; do
	[ -f "$file" ] || continue # deleted, not yet committed
	mkdir -p "$copy/$(dirname "$file")"
	cp -p "$file" "$copy/$file" # with its time: make looks at it
done
ln -s "$root/vendor" "$copy/vendor"
ln -s "$root/bin" "$copy/bin" # controller-gen, crd-ref-docs

regenerated() { # target, folder: regenerate in the copy and print what differs
	make -s -C "$copy" "$1" >"$work/log" 2>&1 || {
		cat "$work/log"
		return 1
	}
	(cd "$copy" && find "$2" -type f) | while read -r file; do
		if [ ! -f "$file" ]; then
			echo "missing: $file"
		elif ! git diff --no-index --quiet "$file" "$copy/$file"; then
			echo "$file differs:"
			git --no-pager diff --no-index --no-color "$file" "$copy/$file" | sed -n '5,20p'
		fi
	done
}

deepcopy() { regenerated generate pkg/apis; }

# A CRD whose type is gone would stay for ever: the copy starts without any.
crds() {
	find "$copy/manifests/crds" -name '*.yaml' ! -name kustomization.yaml -delete
	regenerated manifests manifests/crds
	find manifests/crds -name '*.yaml' ! -name kustomization.yaml | while read -r file; do
		[ -f "$copy/$file" ] || echo "no longer generated: $file"
	done
}

# quietly runs a function and shows what it says to standard error only if it fails: with an empty module cache go tells
# what it downloads, which is no difference.
quietly() {
	"$@" 2>"$work/progress" || {
		grep -v '^go: downloading ' "$work/progress"
		return 1
	}
}

generated_docs() { regenerated docs docs; }

tidied() { (cd "$1" && GOFLAGS=-mod=mod go mod tidy -diff); }
vendor() { GOFLAGS=-mod=mod go mod vendor -o "$work/vendor"; }

modules() {
	for dir in . hack/controlplane* hack/coscheduling hack/lint hack/prometheus hack/release hack/stocktests hack/tools hack/workloads/*; do
		quietly tidied "$dir"
	done
}

vendored() {
	quietly vendor
	git --no-pager diff --no-index --no-color --name-status vendor "$work/vendor" | sed -n '1,20p'
}

formatted() { gofmt -l cmd hack manifests pkg test; }

licensed() { hack/license-headers.sh; }

# The same package in two versions is compiled twice, which is minutes of a first build.
shared() {
	awk '/^\t[^ ]+ v/ { if (FILENAME == "go.mod") version[$1] = $2
		else if (version[$1] && version[$1] != $2) print $1 ": " version[$1] " in go.mod, " $2 " in " FILENAME }' go.mod hack/controlplane/go.mod
}

check "deepcopy functions of the API types" "make generate" deepcopy
check "CRDs of the API types" "make manifests" crds
check "references in docs" "make docs" generated_docs
check "go.mod and go.sum of every module" "make vendor" modules
check "versions of hack/controlplane" "hack/update-kubernetes.sh" shared
check "vendor/" "make vendor" vendored
check "formatting" "make fmt" formatted
check "license headers" "hack/license-headers.sh --fix" licensed

if [ -n "$failed" ]; then
	echo "verify failed: see what differs above" >&2
	exit 1
fi
