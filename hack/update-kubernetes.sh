#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Moves the project to another Kubernetes version, and (re)writes the replace lines that go with it.
#
#   hack/update-kubernetes.sh            # rewrite for the version go.mod already names
#   hack/update-kubernetes.sh v1.37.3    # move go.mod, and those of hack/controlplane and hack/stocktests, there
#   hack/update-kubernetes.sh v1.36.3 hack/controlplane-1.36    # move the go.mod of that directory alone
#
# k8s.io/kubernetes requires its staging modules at v0.0.0 and replaces them with folders of its own repository, which
# only works inside that repository. Everybody else has to pin each of them to the matching v0.X.Y; the list is read
# from the go.mod of the version asked for, so that it never goes stale.
set -eu
cd "$(dirname "$0")/.."

version=${1:-$(awk '$1 == "k8s.io/kubernetes" { print $2; exit }' go.mod)}
case $version in
v1.*.*) ;;
*) echo "usage: $0 v1.X.Y (got '$version')" >&2; exit 2 ;;
esac
staging=v0.${version#v1.}

# Programs and servers have the same versions of the same modules: a first build then compiles their packages once. So
# hack/controlplane asks for what go.mod has, and tidy raises or adds only what the servers need beyond that.
share() {
	for module in $(awk '/^\t[^ ]+ v/ && $1 !~ /^(k8s.io\/kubernetes|go.etcd.io\/etcd\/server\/v3)$/ { print $1 }' go.mod); do
		go mod edit -droprequire "$module"
	done
	for module in $(awk '/^\t[^ ]+ v/ { print $1 "@" $2 }' ../../go.mod); do
		go mod edit -require "$module"
	done
}

# The download prints JSON; the line "GoMod": "/path/to/go.mod" is the one wanted.
gomod=$(GOFLAGS=-mod=mod go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
[ -f "$gomod" ] || { echo "$0: no go.mod found for k8s.io/kubernetes@$version" >&2; exit 1; }
modules=$(sed -n 's|^[[:space:]]*\(k8s.io/[a-z0-9-]*\) => ./staging/.*|\1|p' "$gomod")
[ -n "$modules" ] || { echo "$0: found no staging modules in $gomod" >&2; exit 1; }

for dir in ${2:-. hack/controlplane hack/stocktests}; do
	(
		cd "$dir"
		# Drop what an older version may have had and this one has not.
		for old in $(awk '/=> k8s.io\// { for (i = 1; i <= NF; i++) if ($i ~ /^k8s.io\//) { print $i; break } }' go.mod); do
			go mod edit -dropreplace "$old"
		done
		go mod edit -require "k8s.io/kubernetes@$version"
		for module in $modules; do
			go mod edit -replace "$module=$module@$staging"
			if grep -q "^[[:space:]]*$module v" go.mod; then
				go mod edit -require "$module@$staging"
			fi
		done
		if [ "$dir" = hack/controlplane ]; then share; fi
		GOFLAGS=-mod=mod go mod tidy
	)
done
echo "Kubernetes $version (staging $staging) in go.mod of ${2:-. hack/controlplane hack/stocktests}; now run: make vendor"
