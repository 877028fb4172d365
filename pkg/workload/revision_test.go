// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// rollingSet is a set with every field that can be rolled out, as admission has accepted it.
func rollingSet() *v1alpha1.PodCliqueSet {
	set := podCliqueSet()
	c := set.Spec.Template.Cliques[0]
	c.Labels, c.Annotations = map[string]string{"team": "a", "queue": "gold"}, map[string]string{"note": "x"}
	c.Spec.PodSpec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
	c.Spec.PodSpec.NodeSelector = map[string]string{"pool": "gpu", "zone": "a"}
	c.Spec.PodSpec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	v1alpha1.SetDefaults(set, v1alpha1.DefaultSchedulerName)
	return set
}

// throughTheAPI returns a set parsed from its JSON, after a change of the JSON.
func throughTheAPI(t *testing.T, set *v1alpha1.PodCliqueSet, replace ...string) *v1alpha1.PodCliqueSet {
	t.Helper()
	data, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(replace...).Replace(string(data))
	if len(replace) > 0 && text == string(data) {
		t.Fatalf("%q is not in %s", replace, text)
	}
	read := &v1alpha1.PodCliqueSet{}
	if err := json.Unmarshal([]byte(text), read); err != nil {
		t.Fatal(err)
	}
	return read
}

// TestDescribes: equivalent templates have the same revision, whatever their notation; templates that create different
// pods have different revisions.
func TestDescribes(t *testing.T) {
	t.Parallel()
	worker := func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueTemplateSpec { return s.Spec.Template.Cliques[0] }
	for name, tc := range map[string]struct {
		edit func(*v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet
		want bool
	}{
		"nothing": {func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet { return s }, true},
		"a quantity is written otherwise": {func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
			return throughTheAPI(t, s, `"cpu":"1"`, `"cpu":"1000m"`, `"memory":"1Gi"`, `"memory":"1024Mi"`)
		}, true},
		"keys of maps are in another order": {func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
			return throughTheAPI(t, s, `"pool":"gpu","zone":"a"`, `"zone":"a","pool":"gpu"`, `"queue":"gold","team":"a"`, `"team":"a","queue":"gold"`)
		}, true},
		"an empty list is given": {func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
			worker(s).Spec.PodSpec.Volumes, worker(s).Spec.PodSpec.Containers[0].Env = []corev1.Volume{}, []corev1.EnvVar{}
			return s
		}, true},
		"empty maps are given": {func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
			s.Spec.Template.Cliques[1].Labels, s.Spec.Template.Cliques[1].Annotations = map[string]string{}, map[string]string{}
			return s
		}, true},
		"a default is left out": {func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
			worker(s).Spec.PodSpec.RestartPolicy, worker(s).Spec.PodSpec.SchedulerName, worker(s).Spec.PodSpec.TerminationGracePeriodSeconds = "", "", nil
			return s
		}, true},
		"cliques are in another order": {func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
			slices.Reverse(s.Spec.Template.Cliques)
			return s
		}, true},
		"replicas, minimum, delay, strategy": {func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
			worker(s).Spec.Replicas, worker(s).Spec.MinAvailable, s.Spec.Replicas = 9, ptr.To[int32](4), 7
			s.Spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Hour}
			s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}
			return s
		}, true},
		"minReadySeconds, paused, partition": {func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
			worker(s).Spec.MinReadySeconds = 60
			for i := range s.Spec.Template.PodCliqueScalingGroupConfigs {
				s.Spec.Template.PodCliqueScalingGroupConfigs[i].MinReadySeconds = 90
			}
			s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{
				RollingRecreate: &v1alpha1.RollingRecreateUpdateStrategy{Paused: true, Partition: ptr.To[int32](1)}}
			return s
		}, true},
		"an image": {func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
			worker(s).Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
			return s
		}, false},
		"a quantity": {func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
			worker(s).Spec.PodSpec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2")
			return s
		}, false},
		"a label is taken out": {func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
			delete(worker(s).Labels, "team")
			return s
		}, false},
		"an annotation": {func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
			worker(s).Annotations["note"] = "y"
			return s
		}, false},
		"the priority class": {func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
			s.Spec.Template.PriorityClassName = "high"
			return s
		}, false},
		"a variable": {func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
			worker(s).Spec.PodSpec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}}
			return s
		}, false},
		"a clique less": {func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
			s.Spec.Template.Cliques = s.Spec.Template.Cliques[:3]
			return s
		}, false},
		"a clique of another name": {func(s *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
			worker(s).Name = "other"
			return s
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := rollingSet()
			r := reread(t, NewRevision(set, v1alpha1.DefaultSchedulerName, nil, nil), set)
			if !r.Describes(set, v1alpha1.DefaultSchedulerName) {
				t.Fatal("a revision does not describe the set that it is of")
			}
			edited := tc.edit(set.DeepCopy())
			before := edited.DeepCopy()
			if got := r.Describes(edited, v1alpha1.DefaultSchedulerName); got != tc.want {
				t.Errorf("the same: %v, want %v", got, tc.want)
			}
			if diff := cmp.Diff(before, edited); diff != "" {
				t.Errorf("the set was changed:\n%s", diff)
			}
			next := NewRevision(edited, v1alpha1.DefaultSchedulerName, []*Revision{r}, nil)
			for _, c := range next.Cliques {
				was := r.clique(c.Name)
				same := was != nil && sameClique(withDefaults(edited, v1alpha1.DefaultSchedulerName), withDefaults(set, v1alpha1.DefaultSchedulerName), c.Name)
				if was != nil && (c.Hash == was.Hash) != same {
					t.Errorf("clique %s is the same: %v; hash %s was %s", c.Name, same, c.Hash, was.Hash)
				}
			}
			if next.Number != 2 || !tc.want && next.Hash == r.Hash {
				t.Errorf("the next revision has number %d and hash %s, that before %s", next.Number, next.Hash, r.Hash)
			}
		})
	}
}

// reread stores a revision and reads it again.
func reread(t *testing.T, r *Revision, set *v1alpha1.PodCliqueSet) *Revision {
	t.Helper()
	stored, err := r.Stored(set)
	if err != nil {
		t.Fatal(err)
	}
	if stored.Name != set.Name+"-"+r.Hash || stored.Revision != r.Number || !metav1.IsControlledBy(stored, set) || stored.Labels[v1alpha1.LabelPartOf] != set.Name {
		t.Errorf("stored as %+v, revision %d", stored.ObjectMeta, stored.Revision)
	}
	again, err := ReadRevision(stored)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func TestReadRevision(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]bool{
		`{"hash":"abc","cliques":[]}`: true, `{"hash":"abc","of-a-later-version":1}`: true,
		`{"hash":"def","cliques":[]}`: false, `{}`: false, ``: false, `null`: false, `[]`: false, `spoiled`: false, `{"hash":"abc","cliques":7}`: false,
	} {
		r, err := ReadRevision(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "s-abc"}, Revision: 4, Data: runtime.RawExtension{Raw: []byte(data)}})
		if (err == nil) != want {
			t.Errorf("%s: %v", data, err)
		}
		if err == nil && (r.Number != 4 || r.Hash != "abc") {
			t.Errorf("%s: %+v", data, r)
		}
	}
}

// TestRevisionTemplate: Template restores earlier values, and only of fields that are rolled out.
func TestRevisionTemplate(t *testing.T) {
	t.Parallel()
	set := rollingSet()
	r := reread(t, NewRevision(set, v1alpha1.DefaultSchedulerName, nil, nil), set)
	edited := set.DeepCopy()
	edited.Spec.Replicas, edited.Spec.Template.PriorityClassName = 9, "high"
	edited.Spec.Template.Cliques[0].Labels, edited.Spec.Template.Cliques[0].Annotations = nil, map[string]string{"a": "b"}
	edited.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
	want := set.DeepCopy()
	want.Spec.Replicas = 9
	got := r.Template(edited)
	if diff := cmp.Diff(throughTheAPI(t, want).Spec, throughTheAPI(t, got).Spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Image = "changed"
	if !r.Describes(set, v1alpha1.DefaultSchedulerName) || edited.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Image != "registry.example/main:2" {
		t.Error("a copy shares memory with its original")
	}
}

// TestAdopt: existing hashes of PodCliques are adopted, whatever version of muster-controller computed them.
func TestAdopt(t *testing.T) {
	t.Parallel()
	const key = v1alpha1.LabelPodTemplateHash
	set := rollingSet()
	computed := NewRevision(set, v1alpha1.DefaultSchedulerName, nil, nil).clique("prefill-worker").Hash
	for name, tc := range map[string]struct {
		change      func(map[string]*v1alpha1.PodClique)
		wantHash    string
		wantAdopted []string
	}{
		"computed as now": {func(map[string]*v1alpha1.PodClique) {}, computed, nil},
		"none is there":   {func(live map[string]*v1alpha1.PodClique) { clear(live) }, computed, nil},
		"of an earlier version": {func(live map[string]*v1alpha1.PodClique) {
			for _, c := range live {
				c.Labels[key] = "earlier"
			}
		}, "earlier", nil},
		"of two versions": {func(live map[string]*v1alpha1.PodClique) {
			live["llm-1-prefill-1-prefill-worker"].Labels[key] = "earlier"
		}, computed, []string{"earlier"}},
		"of two versions, equally often": {func(live map[string]*v1alpha1.PodClique) {
			for name, c := range live {
				c.Labels[key] = "second"
				if strings.HasPrefix(name, "llm-0-") {
					c.Labels[key] = "first"
				}
			}
		}, "first", []string{"second"}},
		"of another template": {func(live map[string]*v1alpha1.PodClique) {
			for _, c := range live {
				c.Labels[key], c.Spec.PodSpec.Containers[0].Image = "other", "registry.example/main:0"
			}
		}, computed, nil},
		"without a hash": {func(live map[string]*v1alpha1.PodClique) {
			for _, c := range live {
				delete(c.Labels, key)
			}
		}, computed, nil},
		"with labels of others": {func(live map[string]*v1alpha1.PodClique) {
			for _, c := range live {
				c.Labels["argocd.argoproj.io/instance"], c.Labels[key] = "prod", "earlier"
			}
		}, "earlier", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := apply(set, Children{}).Cliques
			tc.change(live)
			r := NewRevision(set, v1alpha1.DefaultSchedulerName, nil, slices.Collect(maps.Values(live)))
			if c := r.clique("prefill-worker"); c.Hash != tc.wantHash || !slices.Equal(c.Adopted, tc.wantAdopted) {
				t.Errorf("hash %s, adopted %v; want %s, %v", c.Hash, c.Adopted, tc.wantHash, tc.wantAdopted)
			}
			after := apply(set, Children{Cliques: live}).Cliques
			for name, c := range live {
				if was := c.Labels[key]; was != "" && was != "other" && after[name].Labels[key] != was {
					t.Errorf("%s had hash %s and has %s", name, was, after[name].Labels[key])
				}
			}
		})
	}
}

// TestAHashOfAnotherTemplateIsNotAdopted: a PodClique whose template another client changed keeps its hash, which is
// not adopted.
func TestAHashOfAnotherTemplateIsNotAdopted(t *testing.T) {
	t.Parallel()
	set := rollingSet()
	first := NewRevision(set, v1alpha1.DefaultSchedulerName, nil, nil)
	live := apply(set, Children{}).Cliques
	set.Status.CurrentGenerationHash = &first.Hash
	set.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
	for _, c := range live {
		if c.Labels[v1alpha1.LabelTemplateName] == "worker" {
			c.Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
		}
	}
	second := NewRevision(set, v1alpha1.DefaultSchedulerName, []*Revision{first}, slices.Collect(maps.Values(live)))
	if second.Hash == first.Hash || second.clique("worker").Hash == first.clique("worker").Hash {
		t.Errorf("the hashes are those of before: %+v", second)
	}
}

// TestADeletedRevisionIsTheSameAgain: a deleted revision is recreated identically as long as PodCliques that follow it
// have the template; otherwise it is a new one.
func TestADeletedRevisionIsTheSameAgain(t *testing.T) {
	t.Parallel()
	set := rollingSet()
	live := slices.Collect(maps.Values(apply(set, Children{}).Cliques))
	for _, c := range live {
		c.Annotations[v1alpha1.AnnotationGenerationHash] = "of-then"
	}
	set.Status.CurrentGenerationHash = ptr.To("of-then")
	if r := NewRevision(set, v1alpha1.DefaultSchedulerName, nil, live); r.Hash != "of-then" {
		t.Errorf("hash %s", r.Hash)
	}
	stored := []*Revision{{Hash: "of-then", Number: 4}}
	if r := NewRevision(set, v1alpha1.DefaultSchedulerName, stored, live); r.Hash == "of-then" || r.Number != 5 {
		t.Errorf("it is stored with another template: %s, number %d", r.Hash, r.Number)
	}
	set.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
	if r := NewRevision(set, v1alpha1.DefaultSchedulerName, nil, live); r.Hash == "of-then" {
		t.Error("another template has the same hash")
	}
}

// TestTrainingDoesNotFollow: the PodCliques of a Training workload whose template was edited without admission keep
// their pods and their hash.
func TestTrainingDoesNotFollow(t *testing.T) {
	t.Parallel()
	set := trainingSet()
	v1alpha1.SetDefaults(set, v1alpha1.DefaultSchedulerName)
	live := apply(set, Children{})
	for _, c := range set.Spec.Template.Cliques {
		c.Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
	}
	after := apply(set, live)
	for name, c := range after.Cliques {
		if was := live.Cliques[name]; c.Labels[v1alpha1.LabelPodTemplateHash] != was.Labels[v1alpha1.LabelPodTemplateHash] || !cmp.Equal(c.Spec.PodSpec, was.Spec.PodSpec) {
			t.Errorf("%s follows the edit", name)
		}
	}
	first := NewRevision(set, v1alpha1.DefaultSchedulerName, nil, nil)
	set.Status.CurrentGenerationHash = ptr.To("before")
	if s := BeginUpdate(set, first, metav1.Now()); s.UpdateProgress != nil || *s.CurrentGenerationHash != first.Hash {
		t.Errorf("an update began: %+v", s)
	}
}

// TestTell: the annotations that owners set on their children (docs/decisions, U8).
func TestTell(t *testing.T) {
	t.Parallel()
	onDelete := &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}
	updating := &v1alpha1.PodCliqueSetUpdateProgress{CurrentlyUpdating: &v1alpha1.PodCliqueSetReplicaUpdateProgress{ReplicaIndex: 0}}
	ended := updating.DeepCopy()
	ended.UpdateEndedAt = ptr.To(metav1.Now())
	for name, tc := range map[string]struct {
		strategy       *v1alpha1.PodCliqueSetUpdateStrategy
		progress       *v1alpha1.PodCliqueSetUpdateProgress
		liveTurn       string
		wantTurn       [2]string // of replicas 0 and 1
		wantByDeletion bool
	}{
		"no update":                      {wantTurn: [2]string{"", ""}},
		"replica 0 is updated":           {progress: updating, wantTurn: [2]string{"7", ""}},
		"the update has ended":           {progress: ended, wantTurn: [2]string{"", ""}},
		"it was the turn of both before": {progress: updating, liveTurn: "7", wantTurn: [2]string{"7", "7"}},
		"in an update to another":        {progress: updating, liveTurn: "6", wantTurn: [2]string{"7", ""}},
		"OnDelete":                       {strategy: onDelete, progress: updating, liveTurn: "7", wantTurn: [2]string{"", ""}, wantByDeletion: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := rollingSet()
			live := apply(set, Children{})
			for _, o := range live.Cliques {
				o.Annotations[v1alpha1.AnnotationUpdateTurn] = tc.liveTurn
			}
			for _, o := range live.Groups {
				o.Annotations[v1alpha1.AnnotationUpdateTurn] = tc.liveTurn
			}
			set.Spec.UpdateStrategy, set.Status.UpdateProgress = tc.strategy, tc.progress
			r := present(set, live)
			r.Number = 7
			for i, want := range tc.wantTurn {
				var children []metav1.Object
				for _, c := range PodCliques(set, r, i, live.Cliques, nil) {
					children = append(children, c)
				}
				for _, g := range ScalingGroups(set, r, i, live.Groups, nil) {
					children = append(children, g)
				}
				for _, o := range children {
					a := o.GetAnnotations()
					if a[v1alpha1.AnnotationUpdateTurn] != want || a[v1alpha1.AnnotationRevision] != "7" || a[v1alpha1.AnnotationGenerationHash] != r.Hash ||
						(a[v1alpha1.AnnotationUpdateStrategy] != "") != tc.wantByDeletion {
						t.Errorf("%s has the annotations %v", o.GetName(), a)
					}
				}
			}
		})
	}
}

// TestUpdatedWritesNoEarlierRevision: an object that follows a later revision is left alone by a controller that
// observes an earlier one.
func TestUpdatedWritesNoEarlierRevision(t *testing.T) {
	t.Parallel()
	set := rollingSet()
	live := apply(set, Children{})
	clique := live.Cliques["llm-0-worker"]
	for number, want := range map[string]bool{"": true, "6": true, "7": true, "8": false, "rubbish": true} {
		clique.Annotations[v1alpha1.AnnotationRevision] = number
		r := present(set, live)
		r.Number = 7
		wanted := PodCliques(set, r, 0, live.Cliques, nil)[0]
		wanted.Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
		if _, differs := Updated(clique, wanted); differs != want {
			t.Errorf("over number %q: %v, want %v", number, differs, want)
		}
	}
}

func TestBegin(t *testing.T) {
	t.Parallel()
	at, earlier := metav1.NewTime(time.Unix(2000, 0)), metav1.NewTime(time.Unix(1000, 0))
	current := &v1alpha1.PodCliqueSetReplicaUpdateProgress{ReplicaIndex: 3, UpdateStartedAt: earlier}
	for name, tc := range map[string]struct {
		hash     *string
		before   *v1alpha1.PodCliqueSetUpdateProgress
		strategy *v1alpha1.PodCliqueSetUpdateStrategy
		want     *v1alpha1.PodCliqueSetUpdateProgress
	}{
		"the first revision": {},
		"another":            {hash: ptr.To("h"), want: &v1alpha1.PodCliqueSetUpdateProgress{State: "Updating", UpdateStartedAt: at, LastProgressTime: &at, PreviousGenerationHash: "h"}},
		"in an update: its replica stays the one": {ptr.To("h"), &v1alpha1.PodCliqueSetUpdateProgress{UpdateStartedAt: earlier, CurrentlyUpdating: current, UpdatedPodCliquesCount: 4, PreviousGenerationHash: "g", ReachedIndices: "3-4"}, nil,
			&v1alpha1.PodCliqueSetUpdateProgress{State: "Updating", UpdateStartedAt: at, LastProgressTime: &at, CurrentlyUpdating: current, PreviousGenerationHash: "g", ReachedIndices: "3"}},
		"after one": {ptr.To("h"), &v1alpha1.PodCliqueSetUpdateProgress{UpdateStartedAt: earlier, UpdateEndedAt: &earlier, CurrentlyUpdating: current}, nil,
			&v1alpha1.PodCliqueSetUpdateProgress{State: "Updating", UpdateStartedAt: at, LastProgressTime: &at, PreviousGenerationHash: "h"}},
		"OnDelete": {ptr.To("h"), &v1alpha1.PodCliqueSetUpdateProgress{UpdateStartedAt: earlier, CurrentlyUpdating: current}, &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType},
			&v1alpha1.PodCliqueSetUpdateProgress{State: "OnDelete", UpdateStartedAt: at, UpdateEndedAt: &at, LastProgressTime: &at}},
	} {
		set := rollingSet()
		set.Spec.UpdateStrategy, set.Status.CurrentGenerationHash, set.Status.UpdateProgress = tc.strategy, tc.hash, tc.before
		before := set.DeepCopy()
		s := BeginUpdate(set, &Revision{Hash: "new"}, at)
		if diff := cmp.Diff(tc.want, s.UpdateProgress); diff != "" || *s.CurrentGenerationHash != "new" {
			t.Errorf("%s: hash %s (-want +got):\n%s", name, *s.CurrentGenerationHash, diff)
		}
		if diff := cmp.Diff(before, set); diff != "" {
			t.Errorf("%s: the set was changed:\n%s", name, diff)
		}
	}
}

// TestStoredDataIsSorted: a patch of a ControllerRevision's metadata rewrites its data with sorted keys, and the data
// is immutable.
func TestStoredDataIsSorted(t *testing.T) {
	t.Parallel()
	set := makePodCliqueSet("s", 1).Clique("b", 1).Clique("a", 1).Obj()
	big := int64(1)<<62 + 1
	set.Spec.Template.Cliques[0].Spec.PodSpec.TerminationGracePeriodSeconds = &big
	stored, err := NewRevision(set, "", nil, nil).Stored(set)
	if err != nil {
		t.Fatal(err)
	}
	var decoded map[string]any
	if err := utiljson.Unmarshal(stored.Data.Raw, &decoded); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	if string(again) != string(stored.Data.Raw) {
		t.Errorf("%s\nis written again as\n%s", stored.Data.Raw, again)
	}
	read, err := ReadRevision(stored)
	if err != nil {
		t.Fatal(err)
	}
	if got := *read.clique("b").PodSpec.TerminationGracePeriodSeconds; got != big {
		t.Errorf("terminationGracePeriodSeconds is %d, want %d", got, big)
	}
}

// TestIsPassed: whether a replica of a scaling group is of the newest revision, which changes the worker.
func TestIsPassed(t *testing.T) {
	t.Parallel()
	hold := &Hold{Revision: &Revision{Cliques: []RevisionClique{{Name: "leader", Hash: "l1"}, {Name: "worker", Hash: "w1"}}}}
	newest := &Revision{Cliques: []RevisionClique{{Name: "leader", Hash: "l1"}, {Name: "worker", Hash: "w2"}}}
	clique := func(name, hash string) *v1alpha1.PodClique {
		return &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelTemplateName: name, v1alpha1.LabelPodTemplateHash: hash}}}
	}
	for name, tc := range map[string]struct {
		hold    *Hold
		replica []*v1alpha1.PodClique
		want    bool
	}{
		"of the previous one":           {hold, []*v1alpha1.PodClique{clique("leader", "l1"), clique("worker", "w1")}, false},
		"of the newest one":             {hold, []*v1alpha1.PodClique{clique("leader", "l1"), clique("worker", "w2")}, true},
		"only what has not changed":     {hold, []*v1alpha1.PodClique{clique("leader", "l1")}, false},
		"of both":                       {hold, []*v1alpha1.PodClique{clique("worker", "w2"), clique("worker", "w1")}, false},
		"nothing exists":                {hold, nil, false},
		"the previous one is not known": {&Hold{}, []*v1alpha1.PodClique{clique("worker", "w2")}, false},
	} {
		if got := tc.hold.IsPassed(newest, tc.replica); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
