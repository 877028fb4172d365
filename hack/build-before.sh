#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the programs of an earlier commit into bin/before, beside the manifests that it had: what `make test-upgrade`
# upgrades from. Nothing is built if they are there already.
#
#   hack/build-before.sh COMMIT
set -eu
cd "$(dirname "$0")/.."

commit=$(git rev-parse --verify --quiet "$1^{commit}") || {
	echo "$0: this clone has no commit $1; fetch it, or name another one: make BEFORE=COMMIT" >&2
	exit 1
}
if [ "$(cat bin/before/commit 2>/dev/null)" = "$commit" ]; then
	exit
fi
echo "building Muster of $(git log -1 --format='%h, %cs' "$commit") (a minute, if this one is built)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
git archive "$commit" | tar -x -C "$work"
make -s -C "$work" build
rm -rf bin/before
mkdir -p bin/before
mv "$work"/bin/muster-* "$work/manifests" bin/before/
echo "$commit" >bin/before/commit
