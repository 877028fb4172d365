// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/wrappers"
)

// makePodCliqueSet starts a set as it is read from an API server.
func makePodCliqueSet(name string, replicas int32) *wrappers.PodCliqueSetWrapper {
	return wrappers.MakePodCliqueSet(name, "ml").UID(name + "-uid").Generation(2).Replicas(replicas)
}

// podCliqueSet is a disaggregated service, llm, after the given changes: a frontend, two prefill replicas of a leader
// and workers of which one is required, and one decode replica. Two cliques have names with the same ending, and the
// name of one begins with that of a group.
func podCliqueSet(changes ...func(*v1alpha1.PodCliqueSet)) *v1alpha1.PodCliqueSet {
	set := makePodCliqueSet("llm", 2).
		Clique("worker", 3, wrappers.MinAvailable(2)).
		Clique("prefill-leader", 1).Clique("prefill-worker", 4, wrappers.MinAvailable(2)).
		Clique("decode-worker", 2).
		ScalingGroup("prefill", 2, 0, "prefill-leader", "prefill-worker").
		ScalingGroup("decode", 0, 0, "decode-worker").Obj()
	for _, change := range changes {
		change(set)
	}
	return set
}

// present returns the revision of the template of a set without stored revisions.
func present(set *v1alpha1.PodCliqueSet, live Children) *Revision {
	return NewRevision(set, v1alpha1.DefaultSchedulerName, nil, slices.Collect(maps.Values(live.Cliques)))
}

// apply returns all objects of a set as the controllers create them, with empty statuses.
func apply(set *v1alpha1.PodCliqueSet, live Children) Children {
	after := Children{Cliques: map[string]*v1alpha1.PodClique{}, Groups: map[string]*v1alpha1.PodCliqueScalingGroup{},
		PodGroups: map[string]*v2alpha2.PodGroup{}}
	put := func(clique *v1alpha1.PodClique) {
		if old := live.Cliques[clique.Name]; old != nil {
			clique, _ = Updated(old, clique)
		} else {
			clique.UID = types.UID(clique.Name + "-uid")
		}
		after.Cliques[clique.Name] = clique
	}
	r := present(set, live)
	for i := range int(set.Spec.Replicas) {
		for _, clique := range PodCliques(set, r, i, live.Cliques, nil) {
			put(clique)
		}
		for _, group := range ScalingGroups(set, r, i, live.Groups, nil) {
			if old := live.Groups[group.Name]; old != nil {
				group, _ = Updated(old, group)
			} else {
				group.UID = types.UID(group.Name + "-uid")
			}
			after.Groups[group.Name] = group
			for j := range int(group.Spec.Replicas) {
				for _, clique := range MemberPodCliques(set, r, group, j, live.Cliques, nil, false) {
					put(clique)
				}
			}
		}
	}
	return after
}

// outline returns a PodGroup's tree as text, one node per line.
func outline(pg *v2alpha2.PodGroup) string {
	if pg == nil {
		return "none"
	}
	var b strings.Builder
	for _, sg := range pg.Spec.SubGroups {
		fmt.Fprint(&b, sg.Name)
		if sg.Parent != nil {
			fmt.Fprint(&b, " in ", *sg.Parent)
		}
		if sg.MinMember != nil {
			fmt.Fprint(&b, ", pods ", *sg.MinMember)
		}
		if sg.MinSubGroup != nil {
			fmt.Fprint(&b, ", children ", *sg.MinSubGroup)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

func TestPodGroup(t *testing.T) {
	t.Parallel()
	whole := `llm-1-worker, pods 2
llm-1-prefill, children 1
llm-1-prefill-0 in llm-1-prefill
llm-1-prefill-0-prefill-leader in llm-1-prefill-0, pods 1
llm-1-prefill-0-prefill-worker in llm-1-prefill-0, pods 2
llm-1-prefill-1 in llm-1-prefill
llm-1-prefill-1-prefill-leader in llm-1-prefill-1, pods 1
llm-1-prefill-1-prefill-worker in llm-1-prefill-1, pods 2
llm-1-decode, children 1
llm-1-decode-0 in llm-1-decode
llm-1-decode-0-decode-worker in llm-1-decode-0, pods 2
`
	for name, tc := range map[string]struct {
		set  *v1alpha1.PodCliqueSet
		live func(Children)
		want string
	}{
		"no object exists yet": {set: podCliqueSet(), want: whole},
		"all objects exist":    {set: podCliqueSet(), live: func(Children) {}, want: whole},
		"a clique scaled in and one scaled to zero": {
			set: makePodCliqueSet("s", 2).Clique("a", 4).Clique("b", 3).Obj(),
			live: func(c Children) {
				c.Cliques["s-1-a"].Spec.Replicas, c.Cliques["s-1-b"].Spec.Replicas = 3, 0
			},
			want: "s-1-a, pods 3\n",
		},
		"scaled out again: not before the status says so": {
			set: makePodCliqueSet("s", 2).Clique("a", 4).Obj(),
			live: func(c Children) {
				c.Cliques["s-1-a"].Status.MinAvailable = ptr.To[int32](2)
				c.PodGroups["s-1"] = &v2alpha2.PodGroup{}
			},
			want: "s-1-a, pods 2\n",
		},
		"scaled out again, and the PodGroup is new: all": {
			set: makePodCliqueSet("s", 2).Clique("a", 4).Obj(),
			live: func(c Children) {
				c.Cliques["s-1-a"].Status.MinAvailable = ptr.To[int32](2)
			},
			want: "s-1-a, pods 4\n",
		},
		"a group scaled out and one scaled to zero": {
			set: makePodCliqueSet("s", 2).Clique("a", 1).Clique("b", 1).ScalingGroup("g", 0, 0, "a").ScalingGroup("h", 0, 0, "b").Obj(),
			live: func(c Children) {
				c.Groups["s-1-g"].Spec.Replicas, c.Groups["s-1-h"].Spec.Replicas = 2, 0
			},
			want: "s-1-g, children 1\ns-1-g-0 in s-1-g\ns-1-g-0-a in s-1-g-0, pods 1\ns-1-g-1 in s-1-g\ns-1-g-1-a in s-1-g-1, pods 1\n",
		},
		"everything scaled to zero": {
			set: makePodCliqueSet("s", 2).Clique("a", 1).Clique("b", 1).ScalingGroup("g", 0, 0, "b").Obj(),
			live: func(c Children) {
				c.Cliques["s-1-a"].Spec.Replicas, c.Groups["s-1-g"].Spec.Replicas = 0, 0
			},
			want: "none",
		},
		"fewer replicas than the explicit minimum, without admission: waits for the minimum": {
			set: makePodCliqueSet("s", 2).Clique("a", 1).ScalingGroup("g", 2, 2, "a").Obj(),
			live: func(c Children) {
				c.Groups["s-1-g"].Spec.Replicas = 1
			},
			want: "s-1-g, children 2\ns-1-g-0 in s-1-g\ns-1-g-0-a in s-1-g-0, pods 1\ns-1-g-1 in s-1-g\ns-1-g-1-a in s-1-g-1, pods 1\n",
		},
		"a member scaled to zero, without admission: its replica is not in the tree": {
			set: makePodCliqueSet("s", 2).Clique("a", 1).ScalingGroup("g", 2, 2, "a").Obj(),
			live: func(c Children) {
				c.Cliques["s-1-g-0-a"].Spec.Replicas = 0
			},
			want: "s-1-g, children 1\ns-1-g-1 in s-1-g\ns-1-g-1-a in s-1-g-1, pods 1\n",
		},
		"recreated with the replicas it had": {
			set: makePodCliqueSet("s", 2).Clique("a", 4).Status(func(s *v1alpha1.PodCliqueSetStatus) {
				s.RecordedReplicas = []v1alpha1.RecordedReplicas{{Name: "a", Indices: "1", Replicas: 2}, {Name: "a", Indices: "0", Replicas: 9}}
			}).Obj(),
			want: "s-1-a, pods 2\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var live Children
			if tc.live != nil {
				live = apply(tc.set, Children{})
				tc.live(live)
			}
			pg := PodGroup(tc.set, 1, live)
			if diff := cmp.Diff(tc.want, outline(pg)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if pg == nil {
				return
			}
			if _, err := podgroup.Tree(&pg.Spec); err != nil {
				t.Error(err)
			}
			if owner := metav1.GetControllerOf(pg); owner == nil || owner.Kind != "PodCliqueSet" || owner.UID != tc.set.UID || owner.APIVersion != "grove.io/v1alpha1" {
				t.Errorf("owner: %+v", owner)
			}
		})
	}
}

func TestPriorityFlowsDown(t *testing.T) {
	t.Parallel()
	set := podCliqueSet(func(s *v1alpha1.PodCliqueSet) {
		s.Spec.Template.PriorityClassName = "gold"
		s.Spec.Template.Cliques[0].Spec.PodSpec.PriorityClassName = "lead"
	})
	if pg := PodGroup(set, 0, Children{}); pg.Spec.PriorityClassName != "gold" {
		t.Errorf("PodGroup: %q", pg.Spec.PriorityClassName)
	}
	cliques := apply(set, Children{}).Cliques
	if len(cliques) == 0 {
		t.Fatal("no PodClique is made")
	}
	for name, c := range cliques {
		pod, err := Pod(c, lifecycle.NewPod{}, PodOptions{})
		if err != nil || pod.Spec.PriorityClassName != "gold" {
			t.Errorf("pod of %s: %q, %v", name, pod.Spec.PriorityClassName, err)
		}
	}
}

// TestPodGroupMatchesOracle builds the trees of random sets, some of them scaled and with a history, and compares
// their minimums with a count that does not use the tree: which pods must exist for the replica to be admitted, and
// which leaf every pod counts for.
func TestPodGroupMatchesOracle(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 3))
		set, inGroup := randomSet(r)
		live := apply(set, Children{})
		for _, name := range slices.Sorted(maps.Keys(live.Cliques)) {
			if c := live.Cliques[name]; c.Labels[v1alpha1.LabelPodCliqueScalingGroup] == "" && r.IntN(3) == 0 {
				c.Spec.Replicas = r.Int32N(6)
				if c.Spec.MinAvailable != nil {
					c.Spec.Replicas = max(c.Spec.Replicas, *c.Spec.MinAvailable)
				}
				if r.IntN(2) == 0 {
					c.Status.MinAvailable = ptr.To(r.Int32N(4))
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(live.Groups)) {
			if g := live.Groups[name]; r.IntN(3) == 0 {
				g.Spec.Replicas = r.Int32N(5)
				if g.Spec.MinAvailable != nil {
					g.Spec.Replicas = max(g.Spec.Replicas, *g.Spec.MinAvailable)
				}
			}
		}
		live = apply(set, live)
		live.PodGroups = map[string]*v2alpha2.PodGroup{} // no PodGroups yet: the recorded minimum applies
		for i := range int(set.Spec.Replicas) {
			live.PodGroups[fmt.Sprintf("s-%d", i)] = &v2alpha2.PodGroup{}
		}

		for i := range int(set.Spec.Replicas) {
			pods, leaves := oracle(set, i, live, inGroup)
			pg := PodGroup(set, i, live)
			if (pg == nil) != (len(leaves) == 0) {
				t.Fatalf("seed %d: PodGroup %v, leaves %v", seed, pg, leaves)
			}
			if pg == nil {
				continue
			}
			tree, err := podgroup.Tree(&pg.Spec)
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, outline(pg))
			}
			if got := tree.MinPods(); got != pods {
				t.Errorf("seed %d: the tree needs %d pods, the oracle %d\n%s", seed, got, pods, outline(pg))
			}
			var got []string
			for _, leaf := range tree.Leaves() {
				got = append(got, leaf.Name())
			}
			slices.Sort(got)
			if diff := cmp.Diff(leaves, got); diff != "" {
				t.Errorf("seed %d: leaves (-oracle +got):\n%s", seed, diff)
			}
			for name, c := range live.Cliques {
				minMember, listed := LeafOf(pg, name)
				pod, err := Pod(c, lifecycle.NewPod{Index: 1}, PodOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if pod.Annotations[v2alpha2.PodGroupAnnotation] != pg.Name {
					continue
				}
				if listed != slices.Contains(leaves, pod.Labels[v2alpha2.SubGroupLabel]) || (listed && minMember < 1) {
					t.Errorf("seed %d: pod of %s counts for leaf %q, listed: %v with %d", seed, name, pod.Labels[v2alpha2.SubGroupLabel], listed, minMember)
				}
			}
		}
	}
}

// randomSet returns a valid set of random shape, and the group of each clique.
func randomSet(r *rand.Rand) (*v1alpha1.PodCliqueSet, map[string]string) {
	w := makePodCliqueSet("s", 1+r.Int32N(3))
	inGroup := map[string]string{}
	members := map[string][]string{}
	for k := range 1 + r.IntN(5) {
		name := fmt.Sprintf("c%d", k)
		n := 1 + r.Int32N(4)
		if r.IntN(2) == 0 {
			w.Clique(name, n, wrappers.MinAvailable(1+r.Int32N(n)))
		} else {
			w.Clique(name, n)
		}
		if g := r.IntN(4); g > 0 {
			inGroup[name] = fmt.Sprintf("g%d", g)
			members[inGroup[name]] = append(members[inGroup[name]], name)
		}
	}
	for _, g := range slices.Sorted(maps.Keys(members)) {
		n := 1 + r.Int32N(4)
		least := int32(0)
		if r.IntN(2) == 0 {
			least = 1 + r.Int32N(n)
		}
		w.ScalingGroup(g, n, least, members[g]...)
	}
	return w.Obj(), inGroup
}

// oracle returns the number of pods that replica i needs, and the names of all PodCliques in the tree, sorted.
func oracle(set *v1alpha1.PodCliqueSet, i int, live Children, inGroup map[string]string) (pods int, leaves []string) {
	needs := func(c *v1alpha1.PodClique, created int32) int {
		n := c.Spec.Replicas
		switch {
		case n == 0:
			return 0
		case c.Spec.MinAvailable != nil:
			return int(*c.Spec.MinAvailable)
		case c.Status.MinAvailable != nil && *c.Status.MinAvailable > 0:
			return int(min(n, created, *c.Status.MinAvailable))
		default:
			return int(min(n, created))
		}
	}
	perReplica := map[string]int{} // pods of one replica of a group, the same for all
	for _, t := range set.Spec.Template.Cliques {
		if g := inGroup[t.Name]; g != "" {
			if t.Spec.MinAvailable != nil {
				perReplica[g] += int(*t.Spec.MinAvailable)
			} else {
				perReplica[g] += int(t.Spec.Replicas)
			}
			for j := range int(live.Groups[fmt.Sprintf("s-%d-%s", i, g)].Spec.Replicas) {
				leaves = append(leaves, fmt.Sprintf("s-%d-%s-%d-%s", i, g, j, t.Name))
			}
			continue
		}
		name := fmt.Sprintf("s-%d-%s", i, t.Name)
		if n := needs(live.Cliques[name], t.Spec.Replicas); n > 0 {
			pods += n
			leaves = append(leaves, name)
		}
	}
	for g, n := range perReplica {
		group := live.Groups[fmt.Sprintf("s-%d-%s", i, g)]
		switch {
		case group.Spec.Replicas == 0:
		case group.Spec.MinAvailable != nil:
			pods += n * int(*group.Spec.MinAvailable)
		default:
			pods += n
		}
	}
	slices.Sort(leaves)
	return pods, leaves
}

func TestPodCliquesFollowTheirTemplateUntilScaled(t *testing.T) {
	t.Parallel()
	set := makePodCliqueSet("s", 1).Clique("a", 3).Clique("b", 1).ScalingGroup("g", 2, 0, "b").Obj()
	live := apply(set, Children{})
	numbers := func() [2]int32 {
		return [2]int32{live.Cliques["s-0-a"].Spec.Replicas, live.Groups["s-0-g"].Spec.Replicas}
	}
	edit := func(clique, group int32) {
		set.Spec.Template.Cliques[0].Spec.Replicas = clique
		set.Spec.Template.PodCliqueScalingGroupConfigs[0].Replicas = &group
		live = apply(set, live)
	}
	for _, step := range []struct {
		what string
		do   func()
		want [2]int32
		size int32 // the first one, of the clique
	}{
		{"created", func() {}, [2]int32{3, 2}, 3},
		{"the template is edited", func() { edit(5, 3) }, [2]int32{5, 3}, 5},
		{"both are scaled", func() {
			live.Cliques["s-0-a"].Spec.Replicas, live.Groups["s-0-g"].Spec.Replicas = 2, 1
			live = apply(set, live)
		}, [2]int32{2, 1}, 5},
		{"the template is edited again", func() { edit(7, 4) }, [2]int32{2, 1}, 5},
		{"the template happens to ask for what there is", func() { edit(2, 1) }, [2]int32{2, 1}, 5},
		{"and is edited once more: still scaled", func() { edit(9, 9) }, [2]int32{2, 1}, 5},
		{"scaled back to what the template gave last: as if never scaled", func() {
			live.Cliques["s-0-a"].Spec.Replicas, live.Groups["s-0-g"].Spec.Replicas = 5, 3
			live = apply(set, live)
		}, [2]int32{9, 9}, 9},
		{"the annotations are removed: the current replicas stay", func() {
			delete(live.Cliques["s-0-a"].Annotations, v1alpha1.AnnotationTemplateReplicas)
			delete(live.Groups["s-0-g"].Annotations, v1alpha1.AnnotationTemplateReplicas)
			edit(4, 4)
		}, [2]int32{9, 9}, 9},
	} {
		step.do()
		if got := numbers(); got != step.want {
			t.Errorf("%s: replicas of the clique and of the group are %v, want %v", step.what, got, step.want)
		}
		if got := Minimum(live.Cliques["s-0-a"]).AtCreation; got != step.size {
			t.Errorf("%s: first size %d, want %d", step.what, got, step.size)
		}
	}

	set.Status.RecordedReplicas = []v1alpha1.RecordedReplicas{
		{Name: "a", Indices: "0", Replicas: 6, InitialReplicas: ptr.To[int32](3)}, {Name: "g", Indices: "0", Replicas: 5}}
	live = apply(set, Children{})
	if got := numbers(); got != [2]int32{6, 5} {
		t.Errorf("recreated: %v, want the recorded 6 and 5", got)
	}
	live = apply(set, live)
	if got := numbers(); got != [2]int32{6, 5} {
		t.Errorf("recreated, and looked at again: %v", got)
	}
	if got := Minimum(live.Cliques["s-0-a"]).AtCreation; got != 3 {
		t.Errorf("recreated: first created with %d replicas, want 3", got)
	}
}

// TestMinReadySecondsReachTheChildren: existing children follow the template's minReadySeconds, a member with the
// larger one of clique and group, and their pods keep their template.
func TestMinReadySecondsReachTheChildren(t *testing.T) {
	t.Parallel()
	set := makePodCliqueSet("s", 1).Clique("a", 3).Clique("b", 1).Clique("c", 1).ScalingGroup("g", 1, 0, "b", "c").Obj()
	before := apply(set, Children{})
	set.Spec.Template.Cliques[0].Spec.MinReadySeconds, set.Spec.Template.Cliques[1].Spec.MinReadySeconds = 10, 40
	set.Spec.Template.PodCliqueScalingGroupConfigs[0].MinReadySeconds = 20
	after := apply(set, before)
	got := map[string]int32{"s-0-g": after.Groups["s-0-g"].Spec.MinReadySeconds}
	for name, clique := range after.Cliques {
		got[name] = clique.Spec.MinReadySeconds
		if was, is := before.Cliques[name].Labels[v1alpha1.LabelPodTemplateHash], clique.Labels[v1alpha1.LabelPodTemplateHash]; was != is {
			t.Errorf("%s: the template hash was %s and is %s", name, was, is)
		}
	}
	if diff := cmp.Diff(map[string]int32{"s-0-a": 10, "s-0-g": 20, "s-0-g-0-b": 40, "s-0-g-0-c": 20}, got); diff != "" {
		t.Errorf("minReadySeconds (-want +got):\n%s", diff)
	}
}

// TestUpdatedOwner: an owner is named in the version in which it is served now; the garbage collector finds it in no
// other. One that is another object stays.
func TestUpdatedOwner(t *testing.T) {
	t.Parallel()
	of := func(version string, uid types.UID) *v2alpha2.PodGroup {
		return &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "a", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other"},
			{APIVersion: "scheduling.k8s.io/" + version, Kind: "PodGroup", Name: "a", UID: uid, Controller: ptr.To(true)}}}}
	}
	for _, tc := range []struct {
		want    *v2alpha2.PodGroup
		version string
	}{{of("v1beta1", "u1"), "v1beta1"}, {of("v1alpha2", "u1"), "v1alpha2"}, {of("v1beta1", "u2"), "v1alpha2"}} {
		live := of("v1alpha2", "u1")
		updated, differs := Updated(live, tc.want)
		if diff := cmp.Diff(of(tc.version, "u1").OwnerReferences, updated.OwnerReferences); diff != "" || differs != (tc.version != "v1alpha2") {
			t.Errorf("differs: %v, -want +got:\n%s", differs, diff)
		}
		if live.OwnerReferences[1].APIVersion != "scheduling.k8s.io/v1alpha2" {
			t.Error("the cached object was modified")
		}
	}
}

// The annotation that other controllers set, too, when they replace pods of a gang is theirs to remove.
func TestUpdatedKeepsReplacingOfOthers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ live, want, after string }{
		{"yes", "", "yes"}, {"yes", replacingUpdate, replacingUpdate}, {replacingUpdate, "", ""}, {"", "", ""},
	} {
		of := func(value string) *v2alpha2.PodGroup {
			g := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
			if value != "" {
				g.Annotations = map[string]string{v2alpha2.ReplacingAnnotation: value}
			}
			return g
		}
		if updated, _ := Updated(of(tc.live), of(tc.want)); updated.Annotations[v2alpha2.ReplacingAnnotation] != tc.after {
			t.Errorf("%q, wanted %q: %q", tc.live, tc.want, updated.Annotations[v2alpha2.ReplacingAnnotation])
		}
	}
}

func TestUpdatedComesToRest(t *testing.T) {
	t.Parallel()
	set := podCliqueSet()
	set.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1000m")}
	live := apply(set, Children{})
	c := live.Cliques["llm-0-worker"]
	c.Labels["argocd.argoproj.io/instance"] = "prod"
	c.ResourceVersion = "17"
	c.Spec.PodSpec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
	c.Spec.PodSpec.Volumes = []corev1.Volume{}
	before := c.DeepCopy()
	for i := range 2 {
		for _, want := range PodCliques(set, present(set, live), i, live.Cliques, nil) {
			if _, differs := Updated(live.Cliques[want.Name], want); differs {
				t.Errorf("%s differs from itself", want.Name)
			}
		}
		for _, want := range ScalingGroups(set, present(set, live), i, live.Groups, nil) {
			if _, differs := Updated(live.Groups[want.Name], want); differs {
				t.Errorf("%s differs from itself", want.Name)
			}
		}
	}

	set.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
	want := PodCliques(set, present(set, live), 0, live.Cliques, nil)[0]
	updated, differs := Updated(c, want)
	if !differs || updated.Spec.PodSpec.Containers[0].Image != "registry.example/main:2" || updated.Labels["argocd.argoproj.io/instance"] != "prod" || updated.ResourceVersion != "17" {
		t.Errorf("differs: %v; %+v", differs, updated)
	}
	if updated.Labels[v1alpha1.LabelPodTemplateHash] == c.Labels[v1alpha1.LabelPodTemplateHash] {
		t.Error("another template has the same hash")
	}
	if diff := cmp.Diff(before, c); diff != "" {
		t.Errorf("the object given was changed:\n%s", diff)
	}
}

// TestHashIsStored: a hash that another version of muster-controller computed is kept, and PodCliques of the same
// template in other replicas have the same hash.
func TestHashIsStored(t *testing.T) {
	t.Parallel()
	set := podCliqueSet()
	v1alpha1.SetDefaults(set, v1alpha1.DefaultSchedulerName)
	live := apply(set, Children{})
	if a, b := live.Cliques["llm-0-worker"].Labels[v1alpha1.LabelPodTemplateHash], live.Cliques["llm-1-worker"].Labels[v1alpha1.LabelPodTemplateHash]; a != b || a == "" {
		t.Errorf("hashes of one template: %q and %q", a, b)
	}
	live.Cliques["llm-0-worker"].Labels[v1alpha1.LabelPodTemplateHash] = "of-an-older-version"
	if got := PodCliques(set, present(set, live), 0, live.Cliques, nil)[0].Labels[v1alpha1.LabelPodTemplateHash]; got != "of-an-older-version" {
		t.Errorf("the stored hash became %q", got)
	}
}

func TestPod(t *testing.T) {
	t.Parallel()
	set := podCliqueSet(func(s *v1alpha1.PodCliqueSet) {
		c := s.Spec.Template.Cliques[2]
		c.Labels, c.Annotations = map[string]string{"team": "x", v1alpha1.LabelPartOf: "mine"}, map[string]string{"note": "y"}
		c.Spec.PodSpec.InitContainers = []corev1.Container{{Name: "setup", Image: "i"}}
		c.Spec.PodSpec.Containers[0].Env = []corev1.EnvVar{
			{Name: "ADDRESS", Value: "$(GROVE_PCLQ_NAME)-0.$(GROVE_HEADLESS_SERVICE)"}, {Name: "GROVE_PCS_NAME", Value: "overridden"}}
		c.Spec.PodSpec.Hostname = "mine"
	})
	clique := apply(set, Children{}).Cliques["llm-1-prefill-1-prefill-worker"]
	before := clique.DeepCopy()
	pod, err := Pod(clique, lifecycle.NewPod{Index: 3}, PodOptions{SchedulerName: "gold-scheduler"})
	if err != nil {
		t.Fatal(err)
	}
	if want := naming.PodName(clique.Name, string(clique.UID), clique.Labels[v1alpha1.LabelPodTemplateHash], 3, ""); pod.Name != want || pod.Namespace != "ml" {
		t.Errorf("name %s/%s, want ml/%s", pod.Namespace, pod.Name, want)
	}
	labels := map[string]string{
		"app.kubernetes.io/managed-by":                 "grove-operator",
		"app.kubernetes.io/part-of":                    "llm",
		"app.kubernetes.io/name":                       "llm-1-prefill-1-prefill-worker",
		"app.kubernetes.io/component":                  "pcsg-podclique",
		"grove.io/podclique":                           "llm-1-prefill-1-prefill-worker",
		"grove.io/podclique-pod-index":                 "3",
		"grove.io/podcliqueset-replica-index":          "1",
		"grove.io/podcliquescalinggroup":               "llm-1-prefill",
		"grove.io/podcliquescalinggroup-replica-index": "1",
		"grove.io/podgang":                             "llm-1-prefill-0",
		"grove.io/base-podgang":                        "llm-1",
		"grove.io/template-name":                       "prefill-worker",
		"grove.io/pod-template-hash":                   clique.Labels["grove.io/pod-template-hash"],
		"kai.scheduler/subgroup-name":                  "llm-1-prefill-1-prefill-worker",
		"team":                                         "x",
	}
	if diff := cmp.Diff(labels, pod.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"note": "y", "pod-group-name": "llm-1", "grove.io/podcliqueset-uid": "llm-uid"}, pod.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	ours := []corev1.EnvVar{
		{Name: "GROVE_PCS_NAME", Value: "llm"},
		{Name: "GROVE_PCS_INDEX", Value: "1"},
		{Name: "GROVE_PCLQ_NAME", Value: "llm-1-prefill-1-prefill-worker"},
		{Name: "GROVE_HEADLESS_SERVICE", Value: "llm-1.ml.svc.cluster.local"},
		{Name: "GROVE_PCLQ_POD_INDEX", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
			APIVersion: "v1", FieldPath: "metadata.labels['grove.io/podclique-pod-index']"}}},
		{Name: "GROVE_PCSG_NAME", Value: "llm-1-prefill"},
		{Name: "GROVE_PCSG_INDEX", Value: "1"},
		{Name: "GROVE_PCSG_TEMPLATE_NUM_PODS", Value: "5"},
	}
	want := append(slices.Clone(ours), corev1.EnvVar{Name: "ADDRESS", Value: "$(GROVE_PCLQ_NAME)-0.$(GROVE_HEADLESS_SERVICE)"})
	if diff := cmp.Diff(want, pod.Spec.Containers[0].Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ours, pod.Spec.InitContainers[0].Env); diff != "" {
		t.Errorf("environment of the init container (-want +got):\n%s", diff)
	}
	type spec struct{ Hostname, Subdomain, SchedulerName string }
	if diff := cmp.Diff(spec{"llm-1-prefill-1-prefill-worker-3", "llm-1", "gold-scheduler"},
		spec{pod.Spec.Hostname, pod.Spec.Subdomain, pod.Spec.SchedulerName}); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if owner := metav1.GetControllerOf(pod); owner == nil || owner.UID != clique.UID || owner.Kind != "PodClique" {
		t.Errorf("owner: %+v", owner)
	}
	if diff := cmp.Diff(before, clique); diff != "" {
		t.Errorf("the PodClique was changed:\n%s", diff)
	}
	if got := PodIndex(clique.Name, pod); got != 3 {
		t.Errorf("its index is read as %d", got)
	}

	standalone, err := Pod(apply(set, Children{}).Cliques["llm-1-worker"], lifecycle.NewPod{}, PodOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if standalone.Spec.SchedulerName != "muster-scheduler" || len(standalone.Spec.InitContainers) != 0 || len(standalone.Spec.Containers[0].Env) != 5 {
		t.Errorf("pod of a standalone clique: %+v", standalone.Spec)
	}
	delete(clique.Labels, v1alpha1.LabelPodCliqueSetReplicaIndex)
	if _, err := Pod(clique, lifecycle.NewPod{}, PodOptions{}); err == nil {
		t.Error("a PodClique without its replica index makes pods")
	}
}

func TestStartOrder(t *testing.T) {
	t.Parallel()
	set := podCliqueSet(func(s *v1alpha1.PodCliqueSet) {
		s.Spec.Template.StartupType = ptr.To(v1alpha1.CliqueStartupTypeInOrder)
		s.Spec.Template.Cliques[2].Spec.PodSpec.ServiceAccountName = "puller"
		for _, c := range s.Spec.Template.Cliques {
			c.Spec.PodSpec.InitContainers = []corev1.Container{{Name: "setup", Image: "i"}}
		}
	})
	live := apply(set, Children{})
	first, err := Pod(live.Cliques["llm-0-worker"], lifecycle.NewPod{}, PodOptions{WaitImage: "wait:1"})
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Spec.InitContainers) != 1 || len(first.Spec.Volumes) != 0 {
		t.Errorf("the first in order waits: %+v", first.Spec.InitContainers)
	}
	pod, err := Pod(live.Cliques["llm-0-prefill-0-prefill-worker"], lifecycle.NewPod{}, PodOptions{WaitImage: "wait:1"})
	if err != nil {
		t.Fatal(err)
	}
	wait := pod.Spec.InitContainers[0]
	if wait.Name != "grove-initc" || wait.Image != "wait:1" || pod.Spec.InitContainers[1].Name != "setup" {
		t.Fatalf("init containers: %+v", pod.Spec.InitContainers)
	}
	args := []string{"--podcliqueset=llm", "--replica-index=0", `--requirements=[{"podClique":"llm-0-prefill-0-prefill-leader"}]`}
	if diff := cmp.Diff(args, wait.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if !cmp.Equal(wait.Resources.Requests, wait.Resources.Limits) || wait.Resources.Requests.Cpu().IsZero() {
		t.Errorf("resources: %+v", wait.Resources)
	}
	token := pod.Spec.Volumes[0].Projected
	if token == nil || token.Sources[0].ServiceAccountToken == nil || wait.VolumeMounts[0].Name != pod.Spec.Volumes[0].Name {
		t.Errorf("volumes: %+v", pod.Spec.Volumes)
	}

	role, binding := StartAccess(set)
	if role == nil || binding == nil || role.Name != "grove.io:pcs:llm" || binding.RoleRef.Name != role.Name {
		t.Fatalf("role %+v, binding %+v", role, binding)
	}
	var accounts []string
	for _, s := range binding.Subjects {
		accounts = append(accounts, s.Kind+" "+s.Namespace+"/"+s.Name)
	}
	if diff := cmp.Diff([]string{"ServiceAccount ml/default", "ServiceAccount ml/puller"}, accounts); diff != "" {
		t.Errorf("accounts (-want +got):\n%s", diff)
	}
	for _, o := range []Object{role, binding} {
		for key, value := range o.GetLabels() {
			if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
				t.Errorf("%s: label %s=%q: %v", o.GetName(), key, value, errs)
			}
		}
	}
	if role, binding := StartAccess(podCliqueSet()); role != nil || binding != nil {
		t.Error("a set without an order has a Role")
	}
}

func TestService(t *testing.T) {
	t.Parallel()
	set := podCliqueSet()
	s := Service(set, 1)
	if s.Name != "llm-1" || s.Spec.ClusterIP != "None" || !s.Spec.PublishNotReadyAddresses {
		t.Errorf("%+v", s)
	}
	if diff := cmp.Diff(map[string]string{"app.kubernetes.io/part-of": "llm", "grove.io/podcliqueset-replica-index": "1"}, s.Spec.Selector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	// Fields that the API server adds are not a difference.
	live := s.DeepCopy()
	live.Spec.ClusterIPs, live.Spec.Type, live.Spec.SessionAffinity = []string{"None"}, corev1.ServiceTypeClusterIP, corev1.ServiceAffinityNone
	if _, differs := Updated(live, s); differs {
		t.Error("differs from itself")
	}
	set.Spec.Template.HeadlessServiceConfig = &v1alpha1.HeadlessServiceConfig{PublishNotReadyAddresses: ptr.To(false)}
	if updated, differs := Updated(live, Service(set, 1)); !differs || updated.Spec.PublishNotReadyAddresses || len(updated.Spec.ClusterIPs) != 1 {
		t.Errorf("differs %v: %+v", differs, updated.Spec)
	}
}

func TestHPAs(t *testing.T) {
	t.Parallel()
	metric := autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: "cpu"}}
	set := podCliqueSet(func(s *v1alpha1.PodCliqueSet) {
		s.Spec.Template.Cliques[0].Spec.ScaleConfig = &v1alpha1.AutoScalingConfig{MaxReplicas: 9, Metrics: []autoscalingv2.MetricSpec{metric}}
		s.Spec.Template.Cliques[1].Spec.ScaleConfig = &v1alpha1.AutoScalingConfig{MaxReplicas: 9} // a member, without admission
		s.Spec.Template.PodCliqueScalingGroupConfigs[0].ScaleConfig = &v1alpha1.AutoScalingConfig{MinReplicas: ptr.To[int32](1), MaxReplicas: 5}
	})
	var got []string
	for _, h := range HPAs(set, 1) {
		ref := h.Spec.ScaleTargetRef
		got = append(got, fmt.Sprintf("%s: %s %s/%s, %d to %d, %d metrics", h.Name, ref.APIVersion, ref.Kind, ref.Name, *h.Spec.MinReplicas, h.Spec.MaxReplicas, len(h.Spec.Metrics)))
	}
	want := []string{
		"llm-1-worker: grove.io/v1alpha1 PodClique/llm-1-worker, 3 to 9, 1 metrics",
		"llm-1-prefill: grove.io/v1alpha1 PodCliqueScalingGroup/llm-1-prefill, 1 to 5, 1 metrics",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Fields that the API server adds are not a difference.
	wanted := HPAs(set, 1)[1]
	live := wanted.DeepCopy()
	live.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{}
	if _, differs := Updated(live, wanted); differs {
		t.Error("differs from itself")
	}
	// Metrics that are taken out of the template leave the autoscaler: it has the API server's again.
	live = HPAs(set, 1)[0]
	set.Spec.Template.Cliques[0].Spec.ScaleConfig.Metrics = nil
	updated, differs := Updated(live, HPAs(set, 1)[0])
	if m := updated.Spec.Metrics; !differs || len(m) != 1 || *m[0].Resource.Target.AverageUtilization != 80 {
		t.Errorf("differs: %v; metrics %+v", differs, updated.Spec.Metrics)
	}
}

// TestKeysTakenOutOfATemplate: labels and annotations that a template gave and gives no more are taken from what was
// made from it, and so from new pods; what others left there stays.
func TestKeysTakenOutOfATemplate(t *testing.T) {
	t.Parallel()
	set := podCliqueSet(func(s *v1alpha1.PodCliqueSet) {
		c := s.Spec.Template.Cliques[0]
		c.Labels = map[string]string{"queue": "gold", "team": "x"}
		c.Annotations = map[string]string{"note": "y", "controller.kubernetes.io/pod-deletion-cost": "high"}
		s.Spec.Template.PodCliqueScalingGroupConfigs[0].Annotations = map[string]string{"note": "z"}
	})
	live := apply(set, Children{})
	before := live.Cliques["llm-0-worker"].Labels[v1alpha1.LabelPodTemplateHash]
	for _, o := range []metav1.Object{live.Cliques["llm-0-worker"], live.Groups["llm-0-prefill"]} {
		o.SetLabels(withTemplate(o.GetLabels(), map[string]string{"argocd.argoproj.io/instance": "prod"}))
		o.SetAnnotations(withTemplate(o.GetAnnotations(), map[string]string{"looked-at-by": "me"}))
	}
	keys := func(m map[string]string) []string {
		var keys []string
		for k := range m {
			if !strings.HasPrefix(k, "grove.io/") && !strings.HasPrefix(k, "app.kubernetes.io/") {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		return keys
	}
	type object struct{ CliqueLabels, CliqueAnnotations, PodLabels, PodAnnotations, GroupAnnotations []string }
	look := func() object {
		live = apply(set, live)
		clique := live.Cliques["llm-0-worker"]
		pod, err := Pod(clique, lifecycle.NewPod{}, PodOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for k := range pod.Annotations {
			if strings.HasPrefix(k, "grove.io/") && k != v1alpha1.AnnotationPodCliqueSetUID {
				t.Errorf("the pod has our annotation %s", k)
			}
		}
		return object{keys(clique.Labels), keys(clique.Annotations), keys(pod.Labels), keys(pod.Annotations), keys(live.Groups["llm-0-prefill"].Annotations)}
	}
	whole := object{
		CliqueLabels:      []string{"argocd.argoproj.io/instance", "queue", "team"},
		CliqueAnnotations: []string{"controller.kubernetes.io/pod-deletion-cost", "looked-at-by", "note"},
		PodLabels:         []string{"argocd.argoproj.io/instance", "kai.scheduler/subgroup-name", "queue", "team"},
		PodAnnotations:    []string{"controller.kubernetes.io/pod-deletion-cost", "looked-at-by", "note", "pod-group-name"},
		GroupAnnotations:  []string{"looked-at-by", "note"},
	}
	if diff := cmp.Diff(whole, look()); diff != "" {
		t.Errorf("as made (-want +got):\n%s", diff)
	}

	template := &set.Spec.Template
	delete(template.Cliques[0].Labels, "queue")
	delete(template.Cliques[0].Annotations, "controller.kubernetes.io/pod-deletion-cost")
	template.PodCliqueScalingGroupConfigs[0].Annotations = nil
	some := object{
		CliqueLabels:      []string{"argocd.argoproj.io/instance", "team"},
		CliqueAnnotations: []string{"looked-at-by", "note"},
		PodLabels:         []string{"argocd.argoproj.io/instance", "kai.scheduler/subgroup-name", "team"},
		PodAnnotations:    []string{"looked-at-by", "note", "pod-group-name"},
		GroupAnnotations:  []string{"looked-at-by"},
	}
	if diff := cmp.Diff(some, look()); diff != "" {
		t.Errorf("some taken out (-want +got):\n%s", diff)
	}
	hash := live.Cliques["llm-0-worker"].Labels[v1alpha1.LabelPodTemplateHash]
	if hash == before {
		t.Error("a template without a label has the hash of the one with it: pods that wait would keep the label")
	}
	if diff := cmp.Diff(some, look()); diff != "" || live.Cliques["llm-0-worker"].Labels[v1alpha1.LabelPodTemplateHash] != hash {
		t.Errorf("looked at again (-want +got):\n%s", diff)
	}

	template.Cliques[0].Labels, template.Cliques[0].Annotations = nil, nil
	none := object{
		CliqueLabels:      []string{"argocd.argoproj.io/instance"},
		CliqueAnnotations: []string{"looked-at-by"},
		PodLabels:         []string{"argocd.argoproj.io/instance", "kai.scheduler/subgroup-name"},
		PodAnnotations:    []string{"looked-at-by", "pod-group-name"},
		GroupAnnotations:  []string{"looked-at-by"},
	}
	if diff := cmp.Diff(none, look()); diff != "" {
		t.Errorf("all taken out (-want +got):\n%s", diff)
	}
	clique := live.Cliques["llm-0-worker"]
	if _, differs := Updated(clique, PodCliques(set, present(set, live), 0, live.Cliques, nil)[0]); differs {
		t.Error("differs from itself")
	}
}

// TestSameState: labels and annotations of others are harmless; what decisions rest on is not.
func TestSameState(t *testing.T) {
	t.Parallel()
	clique := func(change func(*v1alpha1.PodClique)) *v1alpha1.PodClique {
		c := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-0-w", UID: "one", Generation: 3, ResourceVersion: "7",
			Labels: map[string]string{v1alpha1.LabelPartOf: "a"}, Annotations: map[string]string{v1alpha1.AnnotationPodCliqueSetAttempt: "1"}}}
		c.Status.ReadyReplicas = 1
		change(c)
		return c
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.PodClique)
		want   bool
	}{
		"another resourceVersion":    {func(c *v1alpha1.PodClique) { c.ResourceVersion = "8" }, true},
		"an annotation of a tool":    {func(c *v1alpha1.PodClique) { c.Annotations["example.com/seen"] = "1" }, true},
		"a label of a user":          {func(c *v1alpha1.PodClique) { c.Labels["team"] = "a" }, true},
		"a finalizer of a tool":      {func(c *v1alpha1.PodClique) { c.Finalizers = []string{"example.com/keep"} }, true},
		"managed fields":             {func(c *v1alpha1.PodClique) { c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}} }, true},
		"a spec":                     {func(c *v1alpha1.PodClique) { c.Generation = 4 }, false},
		"an attempt":                 {func(c *v1alpha1.PodClique) { c.Annotations[v1alpha1.AnnotationPodCliqueSetAttempt] = "2" }, false},
		"an annotation that is gone": {func(c *v1alpha1.PodClique) { c.Annotations = nil }, false},
		"a label of ours":            {func(c *v1alpha1.PodClique) { c.Labels[v1alpha1.LabelPartOf] = "b" }, false},
		"a status":                   {func(c *v1alpha1.PodClique) { c.Status.ReadyReplicas = 2 }, false},
		"a successor of the name":    {func(c *v1alpha1.PodClique) { c.UID = "two" }, false},
		"a deletion":                 {func(c *v1alpha1.PodClique) { c.DeletionTimestamp = ptr.To(metav1.Now()) }, false},
		"another owner":              {func(c *v1alpha1.PodClique) { c.OwnerReferences = []metav1.OwnerReference{{UID: "x"}} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := SameState(clique(func(*v1alpha1.PodClique) {}), clique(tc.change)); got != tc.want {
				t.Errorf("SameState: %v, want %v", got, tc.want)
			}
		})
	}
	scheduled := &v2alpha2.PodGroup{Status: v2alpha2.PodGroupStatus{Phase: "Running"}}
	if SameState(&appsv1.ControllerRevision{Revision: 3}, &appsv1.ControllerRevision{Revision: 4}) {
		t.Error("the number of a stored revision does not matter")
	}
	if !SameState(&v2alpha2.PodGroup{}, scheduled) {
		t.Error("the status of a PodGroup, which the scheduler writes, counts")
	}
	set := &v1alpha1.PodCliqueSet{Status: v1alpha1.PodCliqueSetStatus{RestartCount: 1}}
	if SameState(&v1alpha1.PodCliqueSet{}, set) {
		t.Error("a restart that another muster-controller has recorded does not count")
	}
}
