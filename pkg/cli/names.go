// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/snapshot"
)

// shortKinds are what kubectl calls kinds, beside their names in lower case and their plurals.
var shortKinds = map[string]string{"pg": "podgroup", "po": "pod", "pcs": "podcliqueset", "pclq": "podclique", "pcsg": "podcliquescalinggroup",
	"lws": "leaderworkerset", "sts": "statefulset", "rs": "replicaset"}

// kindOf returns a kind in lower case from how a user writes it: "pg", "podgroups", "PodGroup",
// "podgroups.scheduling.run.ai".
func kindOf(written string) string {
	kind, _, _ := strings.Cut(strings.ToLower(written), ".")
	if long := shortKinds[kind]; long != "" {
		return long
	}
	return strings.TrimSuffix(kind, "s")
}

// splitName returns the kind, "" if none is given, and the name of the arguments NAME, KIND/NAME or KIND NAME.
func splitName(args []string) (kind, name string) {
	if len(args) == 2 {
		return kindOf(args[0]), args[1]
	}
	if kind, name, ok := strings.Cut(args[0], "/"); ok {
		return kindOf(kind), name
	}
	return "", args[0]
}

// gangsOf returns the gangs of a PodGroup, of a pod, or of any object that owns pods, directly or by what it owns.
// Without a kind, a PodGroup of the name comes first. An error names what is similar.
func (w *world) gangsOf(namespace, kind, name string) ([]gangs.Key, error) {
	own := gangs.Key{Namespace: namespace, Name: name}
	groups := snapshot.All[*v2alpha2.PodGroup](w.snapshot)
	if kind == "" || kind == "podgroup" {
		if slices.ContainsFunc(groups, func(g *v2alpha2.PodGroup) bool { return client.ObjectKeyFromObject(g) == own }) {
			return []gangs.Key{own}, nil
		}
	}
	found, names := sets.New[gangs.Key](), sets.New[string]()
	note := func(key gangs.Key, kinds ...named) {
		for _, k := range kinds {
			names.Insert(k.kind + "/" + k.name)
			if k.name == name && (kind == "" || k.kind == kind) && key.Name != "" {
				found.Insert(key)
			}
		}
	}
	owners := w.owners(namespace)
	single := false
	for _, pod := range w.pods {
		if pod.Namespace != namespace {
			continue
		}
		single = single || pod.Name == name && (kind == "" || kind == "pod") && membership.Group(pod) == ""
		note(gangs.Key{Namespace: namespace, Name: membership.Group(pod)}, append(owners.above(pod), named{"pod", pod.Name})...)
	}
	for _, group := range groups {
		if group.Namespace == namespace {
			note(client.ObjectKeyFromObject(group), append(owners.above(group), named{"podgroup", group.Name})...)
		}
	}
	switch {
	case len(found) > 0:
		return slices.SortedFunc(maps.Keys(found), func(a, b gangs.Key) int { return cmp.Compare(a.Name, b.Name) }), nil
	case single:
		return nil, fmt.Errorf("pod %s belongs to no gang: kubectl describe pod %s -n %s says why it waits", name, name, namespace)
	}
	for _, set := range snapshot.All[*v1alpha1.PodCliqueSet](w.snapshot) {
		if set.Namespace != namespace || kind != "" && kind != "podcliqueset" {
			continue
		}
		if names.Insert("podcliqueset/" + set.Name); set.Name == name {
			return nil, fmt.Errorf("podcliqueset %s has no gang: %s", name, w.whyNoGang(set))
		}
	}
	for _, known := range sets.List(names) {
		if k, n, _ := strings.Cut(known, "/"); n == name && (kind == "" || k == kind) {
			return nil, fmt.Errorf("%s %s has no gang: its pods name no PodGroup", k, name)
		}
	}
	text := fmt.Sprintf("there is no PodGroup, and no owner of pods, %s in namespace %s", strings.TrimPrefix(kind+"/"+name, "/"), namespace)
	switch similar, elsewhere := similarNames(name, sets.List(names)), w.namespacesWith(name); {
	case len(elsewhere) > 0:
		text += "; did you mean -n " + strings.Join(elsewhere, ", or -n ") + "?"
	case len(similar) > 0:
		text += "; did you mean " + strings.Join(similar, ", ") + "?"
	case w.lacksNamespace(namespace):
		text += ", which does not exist"
	}
	return nil, errors.New(text)
}

// namespacesWith returns the first namespaces in which a PodGroup, a pod or a controller of a pod has the name.
func (w *world) namespacesWith(name string) []string {
	found := sets.New[string]()
	for _, group := range snapshot.All[*v2alpha2.PodGroup](w.snapshot) {
		if group.Name == name {
			found.Insert(group.Namespace)
		}
	}
	for _, pod := range w.pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		if membership.Group(pod) != "" && (pod.Name == name || owner != nil && owner.Name == name) {
			found.Insert(pod.Namespace)
		}
	}
	return sets.List(found)[:min(len(found), maxSimilar)]
}

// lacksNamespace reports whether there is no such namespace. false if it is not known.
func (w *world) lacksNamespace(name string) bool {
	all := snapshot.All[*corev1.Namespace](w.snapshot)
	return len(all) > 0 && !slices.ContainsFunc(all, func(n *corev1.Namespace) bool { return n.Name == name })
}

// named is the kind, in lower case, and the name of an object.
type named struct{ kind, name string }

// owners are the owners of the objects of a snapshot.
type owners struct {
	of map[types.UID][]metav1.OwnerReference
}

func (w *world) owners(namespace string) owners {
	o := owners{map[types.UID][]metav1.OwnerReference{}}
	for _, object := range w.snapshot.Objects {
		if object, ok := object.(client.Object); ok && object.GetNamespace() == namespace {
			if refs := object.GetOwnerReferences(); len(refs) > 0 {
				if _, isPod := object.(*corev1.Pod); !isPod {
					o.of[object.GetUID()] = refs
				}
			}
		}
	}
	return o
}

// setLabels are labels whose value is the name of an owner above those that the snapshot has.
var setLabels = map[string]string{"jobset.sigs.k8s.io/jobset-name": "jobset", "leaderworkerset.sigs.k8s.io/name": "leaderworkerset",
	"app.kubernetes.io/part-of": "podcliqueset", "ray.io/cluster": "raycluster"}

// above returns the owners of an object, and theirs.
func (o owners) above(object metav1.Object) []named {
	var all []named
	refs := object.GetOwnerReferences()
	for depth := 0; depth < 5 && len(refs) > 0; depth++ {
		var next []metav1.OwnerReference
		for _, ref := range refs {
			all = append(all, named{strings.ToLower(ref.Kind), ref.Name})
			next = append(next, o.of[ref.UID]...)
		}
		refs = next
	}
	for label, kind := range setLabels {
		if name := object.GetLabels()[label]; name != "" {
			all = append(all, named{kind, name})
		}
	}
	return all
}

// maxSimilar is the number of similar names that are suggested.
const maxSimilar = 3

// similarNames returns the names whose last part is the most similar one, at most a third of it different.
func similarNames(name string, names []string) []string {
	distance := func(s string) int {
		_, last, has := strings.Cut(s, "/")
		if !has {
			last = s
		}
		return editDistance(name, last)
	}
	similar := slices.DeleteFunc(slices.Clone(names), func(s string) bool { return distance(s) > max(1, len(name)/3) })
	slices.SortStableFunc(similar, func(a, b string) int { return cmp.Compare(distance(a), distance(b)) })
	return similar[:min(len(similar), maxSimilar)]
}

// editDistance returns the number of characters to insert, delete or replace to turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
