// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	grovevalidation "github.com/muster-project/muster/pkg/apis/grove/validation"
	podgroupvalidation "github.com/muster-project/muster/pkg/apis/scheduling/validation"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

// FuzzAccepted: objects can be created for every set that validation accepts. Defaults are idempotent and do not make
// a valid set invalid, and every desired object has a name, labels and annotations that the API server accepts, and a
// unique name.
func FuzzAccepted(f *testing.F) {
	for seed := range uint64(1000) {
		f.Add(seed, uint64(0))
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		set := anySet(rand.New(rand.NewPCG(a, b)))
		accepted := func() bool { errs, _ := grovevalidation.ValidatePodCliqueSet(set); return len(errs) == 0 }
		before := accepted()
		v1alpha1.SetDefaults(set, "")
		once := set.DeepCopy()
		v1alpha1.SetDefaults(set, "")
		if diff := cmp.Diff(once, set); diff != "" {
			t.Errorf("defaults of what has its defaults (-once +twice):\n%s", diff)
		}
		if accepted() != before {
			t.Fatalf("valid before defaults: %t, after: %t", before, !before)
		}
		if before {
			checkMade(t, set)
		}
	})
}

// TestMostSetsAreAccepted ensures that FuzzAccepted checks a sufficient number of sets.
func TestMostSetsAreAccepted(t *testing.T) {
	accepted := 0
	for seed := range uint64(1000) {
		if errs, _ := grovevalidation.ValidatePodCliqueSet(anySet(rand.New(rand.NewPCG(seed, 0)))); len(errs) == 0 {
			accepted++
		}
	}
	if accepted < 200 || accepted > 800 {
		t.Errorf("%d of 1000 sets were accepted", accepted)
	}
}

// checkMade checks the objects of the first and the last replica of a set, of every scaling group and of every clique.
func checkMade(t *testing.T, set *v1alpha1.PodCliqueSet) {
	t.Helper()
	names := map[string]bool{} // "kind name"
	check := func(kind string, o metav1.Object, problems func(string) []string) {
		t.Helper()
		if key := kind + " " + o.GetName(); names[key] {
			t.Errorf("there are two of %s", key)
		} else {
			names[key] = true
		}
		for _, p := range problems(o.GetName()) {
			t.Errorf("%s %q: %s", kind, o.GetName(), p)
		}
		path := field.NewPath("metadata")
		for _, err := range append(metav1validation.ValidateLabels(o.GetLabels(), path.Child("labels")),
			apivalidation.ValidateAnnotations(o.GetAnnotations(), path.Child("annotations"))...) {
			t.Errorf("%s %q: %v", kind, o.GetName(), err)
		}
		if owner := metav1.GetControllerOf(o); owner == nil || owner.UID == "" {
			t.Errorf("%s %q has no owner", kind, o.GetName())
		}
	}
	subdomain := func(name string) []string { return validation.IsDNS1123Subdomain(name) }
	pods := func(clique *v1alpha1.PodClique) {
		t.Helper()
		clique.UID = "clique"
		check("PodClique", clique, subdomain)
		for _, k := range ends(clique.Spec.Replicas) {
			pod, err := workload.Pod(clique, lifecycle.NewPod{Index: k}, workload.PodOptions{})
			if err != nil {
				t.Error(err)
				continue
			}
			check("Pod", pod, subdomain)
			for _, p := range append(validation.IsDNS1123Label(pod.Spec.Hostname), validation.IsDNS1123Label(pod.Spec.Subdomain)...) {
				t.Errorf("pod %q, host %q of %q: %s", pod.Name, pod.Spec.Hostname, pod.Spec.Subdomain, p)
			}
		}
	}
	set.UID = "set"
	for _, i := range ends(set.Spec.Replicas) {
		revision := workload.NewRevision(set, v1alpha1.DefaultSchedulerName, nil, nil)
		group := workload.PodGroup(set, i, workload.Children{})
		check("PodGroup", group, subdomain)
		if errs, _ := podgroupvalidation.ValidatePodGroup(group); len(errs) > 0 {
			t.Errorf("PodGroup %s: %v", group.Name, errs)
		}
		check("Service", workload.Service(set, i), func(name string) []string { return validation.IsDNS1035Label(name) })
		for _, hpa := range workload.HPAs(set, i) {
			check("HPA", hpa, subdomain)
			if *hpa.Spec.MinReplicas < 1 || hpa.Spec.MaxReplicas < *hpa.Spec.MinReplicas {
				t.Errorf("HPA %s scales from %d to %d", hpa.Name, *hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas)
			}
		}
		for _, clique := range workload.PodCliques(set, revision, i, nil, nil) {
			pods(clique)
		}
		for _, group := range workload.ScalingGroups(set, revision, i, nil, nil) {
			group.UID = "group"
			check("PodCliqueScalingGroup", group, subdomain)
			for _, j := range ends(group.Spec.Replicas) {
				for _, clique := range workload.MemberPodCliques(set, revision, group, j, nil, nil, false) {
					pods(clique)
				}
			}
		}
	}
	workload.StartAccess(set)
	if t.Failed() {
		t.Logf("the set: %+v", set)
	}
}

// ends returns the first and the last index.
func ends(n int32) []int {
	switch {
	case n <= 0:
		return nil
	case n == 1:
		return []int{0}
	}
	return []int{0, int(n) - 1}
}

// anySet returns a set that may be valid or not. Some names have the maximum length, and some numbers the maximum
// value.
func anySet(r *rand.Rand) *v1alpha1.PodCliqueSet {
	one := func(n int) bool { return r.IntN(n) == 0 } // true once in n times
	text := func(length int) string {
		const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
		var b strings.Builder
		for range length {
			if one(6) {
				b.WriteByte('-')
			} else {
				b.WriteByte(letters[r.IntN(len(letters))])
			}
		}
		name := "a" + strings.Trim(b.String(), "-")
		if one(60) {
			name += []string{"", "-", ".", "Ä", " ", "\x00", "🚀"}[r.IntN(7)]
		}
		return name
	}
	number := func() int32 {
		switch {
		case one(80):
			return []int32{0, -1, 1<<31 - 1, -1 << 31, 100_000, 1024}[r.IntN(6)]
		case one(8):
			return 1 + r.Int32N(120)
		}
		return 1 + r.Int32N(4)
	}
	maybe := func(n int32) *int32 {
		if one(2) {
			return nil
		}
		return &n
	}
	metadata := func() map[string]string {
		m := map[string]string{}
		for range r.IntN(3) {
			key := []string{"app", "example.com/" + text(r.IntN(60)), v1alpha1.LabelPartOf, v1alpha1.LabelPodIndex, v1alpha1.LabelTemplateName,
				v1alpha1.AnnotationInitialReplicas, "grove.io/" + text(5)}[r.IntN(7)]
			m[key] = text(r.IntN(62))
		}
		return m
	}
	autoscaling := func(replicas int32) *v1alpha1.AutoScalingConfig {
		if !one(4) {
			return nil
		}
		return &v1alpha1.AutoScalingConfig{MinReplicas: maybe(1 + r.Int32N(3)), MaxReplicas: max(replicas, 3) + r.Int32N(5)}
	}

	set := &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: text(r.IntN(16))}}
	if one(10) {
		set.Name = text(r.IntN(45))
	}
	set.Spec.Replicas = number()
	template := &set.Spec.Template
	if one(2) {
		start := []v1alpha1.CliqueStartupType{v1alpha1.CliqueStartupTypeAnyOrder, v1alpha1.CliqueStartupTypeInOrder, v1alpha1.CliqueStartupTypeExplicit, ""}[min(r.IntN(30), r.IntN(4))]
		template.StartupType = &start
	}
	if one(4) {
		set.Spec.WorkloadType = []v1alpha1.WorkloadType{v1alpha1.WorkloadTypeTraining, v1alpha1.WorkloadTypeInference, "X"}[min(r.IntN(20), r.IntN(3))]
	}
	if one(5) {
		template.TerminationDelay = &metav1.Duration{Duration: time.Duration(r.IntN(20)-1) * time.Minute}
	}
	for range 1 + r.IntN(4) {
		name := text(r.IntN(14))
		if one(8) {
			name = fmt.Sprintf("%d", r.IntN(3))
		}
		clique := &v1alpha1.PodCliqueTemplateSpec{Name: name, Labels: metadata(), Annotations: metadata()}
		clique.Spec = v1alpha1.PodCliqueSpec{Replicas: number(), PodSpec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
		clique.Spec.MinAvailable = maybe(1 + r.Int32N(max(1, min(clique.Spec.Replicas, 3))))
		for _, other := range template.Cliques {
			if other != nil && one(3) {
				clique.Spec.StartsAfter = append(clique.Spec.StartsAfter, other.Name)
			}
		}
		if one(100) {
			clique = nil
		}
		template.Cliques = append(template.Cliques, clique)
	}
	for range r.IntN(3) {
		group := v1alpha1.PodCliqueScalingGroupConfig{Name: text(r.IntN(10)), Annotations: metadata(), Replicas: maybe(number())}
		if one(6) {
			group.Name = []string{"0", "1", "a", "a-0"}[r.IntN(4)]
		}
		for _, clique := range template.Cliques {
			if clique != nil && one(2) && (len(template.PodCliqueScalingGroupConfigs) == 0 || one(4)) {
				group.CliqueNames = append(group.CliqueNames, clique.Name)
			}
		}
		if len(group.CliqueNames) == 0 {
			continue
		}
		replicas := int32(1)
		if group.Replicas != nil {
			replicas = *group.Replicas
		}
		group.MinAvailable = maybe(1 + r.Int32N(max(1, min(replicas, 3))))
		group.ScaleConfig = autoscaling(replicas)
		template.PodCliqueScalingGroupConfigs = append(template.PodCliqueScalingGroupConfigs, group)
	}
	for _, clique := range template.Cliques {
		if clique != nil && len(template.PodCliqueScalingGroupConfigs) == 0 {
			clique.Spec.ScaleConfig = autoscaling(clique.Spec.Replicas)
		}
	}
	return set
}
