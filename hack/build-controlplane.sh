#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the local control plane from Go modules into bin/, only what is out of date.
#
#   hack/build-controlplane.sh                   # what tests, demo and cluster-up need
#   hack/build-controlplane.sh kube-scheduler coscheduling   # the named binaries only; benchmarks compare with these
#   hack/build-controlplane.sh jobset kuberay                # controllers of other projects, with the manifests they publish
#   hack/build-controlplane.sh kube-apiserver-1.36 kube-controller-manager-1.36   # another Kubernetes, that of hack/controlplane-1.36
#
# The versions are those of hack/controlplane/go.mod, and for other projects, each with the Kubernetes that it asks for, of
# hack/coscheduling/go.mod and hack/workloads/NAME/go.mod; the manifests go to bin/NAME.yaml. A binary is
# out of date when the go.sum or the source of its module, the Go toolchain or the flags below changed since it was built;
# bin/.built/NAME remembers.
set -eu
cd "$(dirname "$0")/.."
root=$(pwd)
bin=$root/bin

# The same flags as the Makefile: another flag would be another build cache, and five minutes more.
CGO_ENABLED=0
GOFLAGS="-trimpath -mod=mod"
export CGO_ENABLED GOFLAGS

# What a module is replaced with counts: hack/coscheduling has another Kubernetes than its dependencies ask for.
version_of() { # directory of a go.mod, module
	awk -v module="$2" '$1 == module && $2 == "=>" { replaced = $4 } $1 == module && $2 ~ /^v/ { required = $2 }
		END { print replaced ? replaced : required }' "hack/$1/go.mod"
}

# Built from modules the Kubernetes binaries do not know their version, and clients that compare versions would go wrong.
# The commit is not part of a module, hence "unknown": go.sum is what pins the source.
ldflags_of() { # Kubernetes version
	minor=${1#v1.}
	v=k8s.io/component-base/version
	echo "-X $v.gitVersion=$1 -X $v.gitMajor=1 -X $v.gitMinor=${minor%%.*} -X $v.gitCommit=unknown -X $v.gitTreeState=clean"
}

kubernetes_ldflags=$(ldflags_of "$(version_of controlplane k8s.io/kubernetes)")

describe() { # name; sets module, package, ldflags, manifests and the time a first build takes on two cores
	module=hack/controlplane
	duration=
	manifests= # a module, and files and directories of kustomizations in it
	case $1 in
	jobset | lws | kueue)
		module=hack/workloads/$1 package=sigs.k8s.io/$1 ldflags= duration="4 minutes"
		manifests="sigs.k8s.io/$1 config/default"
		case $1 in
		lws) package=$package/cmd ;;
		kueue) package=$package/cmd/kueue ;;
		esac
		;;
	kuberay)
		module=hack/workloads/kuberay package=github.com/ray-project/kuberay/ray-operator ldflags= duration="4 minutes"
		manifests="$package config/default"
		;;
	trainer)
		module=hack/workloads/trainer package=github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager ldflags= duration="4 minutes"
		manifests="github.com/kubeflow/trainer/v2 manifests/overlays/manager"
		;;
	scheduler-plugins)
		module=hack/coscheduling package=sigs.k8s.io/scheduler-plugins/cmd/controller ldflags= duration="2 minutes"
		manifests="sigs.k8s.io/scheduler-plugins config/crd/bases/scheduling.x-k8s.io_podgroups.yaml
			config/crd/bases/scheduling.x-k8s.io_elasticquotas.yaml manifests/install/all-in-one.yaml"
		;;
	coscheduling)
		module=hack/coscheduling package=. duration="5 minutes"
		ldflags=$(ldflags_of "$(version_of coscheduling k8s.io/kubernetes)")
		manifests="sigs.k8s.io/scheduler-plugins manifests/coscheduling/crd.yaml" # the API server learns its PodGroups from it
		;;
	kube-apiserver-1.* | kube-controller-manager-1.*)
		module=hack/controlplane-${1##*-} package=k8s.io/kubernetes/cmd/${1%-1.*} duration="4 minutes"
		ldflags=$(ldflags_of "$(version_of "controlplane-${1##*-}" k8s.io/kubernetes)")
		;;
	etcd) package=go.etcd.io/etcd/server/v3 ldflags=$kubernetes_ldflags ;; # has no such variables
	kube-apiserver | kube-controller-manager | kube-scheduler | kubectl) package=k8s.io/kubernetes/cmd/$1 ldflags=$kubernetes_ldflags ;;
	*)
		echo "$0: unknown binary '$1'; known: kube-apiserver kube-controller-manager etcd kubectl kube-scheduler coscheduling" \
			"jobset lws kueue kuberay trainer scheduler-plugins kube-apiserver-1.X kube-controller-manager-1.X" >&2
		exit 2
		;;
	esac
}

toolchain=$(go version)
stamp_of() { # name
	describe "$1"
	source_stamp=$(find "$module" -name go.sum -o -name '*.go' | LC_ALL=C sort | xargs cat | git hash-object --stdin)
	printf '%s\n%s\n%s\n%s\n' "$source_stamp" "$toolchain" "$GOFLAGS CGO_ENABLED=$CGO_ENABLED" "$package $ldflags${manifests:+ $manifests}"
}

up_to_date() { # name
	[ -x "$bin/$1" ] && [ -f "$bin/.built/$1" ] && [ "$(cat "$bin/.built/$1")" = "$(stamp_of "$1")" ]
}

render() { # a module, and its manifests, as described
	dir=$(cd "$module" && go list -m -f '{{.Dir}}' "$1")
	shift
	for manifest; do
		echo ---
		case $manifest in
		*.yaml) cat "$dir/$manifest" ;;
		manifests/overlays/manager) # without the JobSet beside it, which it gets from the network
			copy=$(mktemp -d)
			cp -R "$dir/manifests" "$copy" && chmod -R u+w "$copy"
			sed -i '/third-party/d' "$copy/$manifest/kustomization.yaml"
			"$bin/kubectl" kustomize "$copy/$manifest"
			rm -r "$copy"
			;;
		*) "$bin/kubectl" kustomize "$dir/$manifest" ;;
		esac
	done
}

[ $# -gt 0 ] || set -- kube-apiserver kube-controller-manager etcd kubectl
for name; do describe "$name"; done

todo=
together= # of hack/controlplane
packages=
count=0
for name; do
	up_to_date "$name" && continue
	describe "$name"
	if [ $module = hack/controlplane ]; then
		together="$together $name"
		packages="$packages $package"
	else
		todo="$todo $name"
		count=$((count + 1))
	fi
done
mkdir -p "$bin/.built"

# Build beside and rename: a running cluster keeps its old file, an interrupted build leaves nothing half written.
finish() { # file, name
	mv -f "$1" "$bin/$2"
	stamp_of "$2" >"$bin/.built/$2"
}

# In one call: while one is linked, which takes one core, the other core compiles packages of the next.
if [ -n "$together" ]; then
	echo "building$together (about 2 minutes the first time after Muster itself, on two idle cores)"
	rm -rf "$bin/.built/new"
	# shellcheck disable=SC2086 # a list
	(cd hack/controlplane && go build -o "$bin/.built/new/" -ldflags "$kubernetes_ldflags" $packages)
	for name in $together; do
		describe "$name"
		finish "$bin/.built/new/$(basename "${package%/v3}")" "$name"
	done
fi

number=0
for name in $todo; do
	number=$((number + 1))
	describe "$name"
	echo "building $name ($number of $count, about $duration the first time)"
	(cd "$module" && go build -o "$bin/.built/$name.new" -ldflags "$ldflags" "$package")
	[ -z "$manifests" ] || render $manifests >"$bin/$name.yaml"
	finish "$bin/.built/$name.new" "$name"
done
