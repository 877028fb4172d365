// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/test/wrappers"
)

// randomPod returns a pod with random labels, required affinity, anti-affinity and spreading.
func randomPod(rng *rand.Rand) *corev1.Pod {
	pick := func(of ...string) string { return of[rng.Intn(len(of))] }
	pod := wrappers.MakePod("p", pick("a", "b")).Obj()
	pod.Labels = map[string]string{}
	for _, key := range []string{"app", "tier", "team"} {
		if rng.Intn(2) == 0 {
			pod.Labels[key] = pick("x", "y", "z")
		}
	}
	selector := func() *metav1.LabelSelector {
		if rng.Intn(12) == 0 {
			return nil
		}
		s := &metav1.LabelSelector{}
		if rng.Intn(3) == 0 {
			s.MatchLabels = map[string]string{pick("app", "tier"): pick("x", "y", "z")}
		}
		for range rng.Intn(3) {
			r := metav1.LabelSelectorRequirement{Key: pick("app", "tier", "team"), Operator: metav1.LabelSelectorOperator(pick("In", "NotIn", "Exists", "DoesNotExist"))}
			if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
				r.Values = []string{pick("x", "y"), pick("y", "z")}
			}
			s.MatchExpressions = append(s.MatchExpressions, r)
		}
		return s
	}
	terms := func() (out []corev1.PodAffinityTerm) {
		for range rng.Intn(3) {
			term := corev1.PodAffinityTerm{LabelSelector: selector(), TopologyKey: "rack"}
			switch rng.Intn(4) {
			case 0:
				term.Namespaces = []string{"a", "b"}
			case 1:
				term.NamespaceSelector = &metav1.LabelSelector{}
			}
			out = append(out, term)
		}
		return out
	}
	pod.Spec.Affinity = &corev1.Affinity{
		PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms()},
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms()},
	}
	for range rng.Intn(2) {
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.UnsatisfiableConstraintAction(pick("DoNotSchedule", "ScheduleAnyway")), LabelSelector: selector(),
		})
	}
	return pod
}

// matters reports whether a pod may matter to a waiting one, by the functions of the stock scheduler.
func matters(t *testing.T, other, waiting *corev1.Pod) bool {
	t.Helper()
	termsOf := func(pod *corev1.Pod) (affinity, antiAffinity []fwk.AffinityTerm) {
		affinity, antiAffinity, err := kubescheduler.RequiredTerms(pod)
		if err != nil {
			t.Fatal(err)
		}
		return affinity, antiAffinity
	}
	selects := func(terms []fwk.AffinityTerm, pod *corev1.Pod) bool {
		return slices.ContainsFunc(terms, func(term fwk.AffinityTerm) bool { return term.Matches(pod, labels.Set{}) })
	}
	affinity, antiAffinity := termsOf(waiting)
	_, othersAnti := termsOf(other)
	for _, c := range waiting.Spec.TopologySpreadConstraints {
		s, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
		if err != nil {
			t.Fatal(err)
		}
		if c.WhenUnsatisfiable == corev1.DoNotSchedule && waiting.Namespace == other.Namespace && s.Matches(labels.Set(other.Labels)) {
			return true
		}
	}
	return selects(affinity, other) || selects(antiAffinity, other) || selects(othersAnti, waiting)
}

// TestPodsConcernThoseThatTheyMatterTo compares the topics of events with a comparison of every two pods.
func TestPodsConcernThoseThatTheyMatterTo(t *testing.T) {
	t.Parallel()
	for seed := range 300 {
		rng := rand.New(rand.NewSource(int64(seed)))
		x := newLabelTopics()
		var waiting []*corev1.Pod
		var topics [][]*labelTopic
		for range 20 {
			pod := randomPod(rng)
			tracked, err := x.track(pod)
			if err != nil {
				t.Fatal(err)
			}
			waiting, topics = append(waiting, pod), append(topics, tracked)
			if i := rng.Intn(len(waiting)); rng.Intn(4) == 0 {
				x.release(topics[i])
				waiting, topics = slices.Delete(waiting, i, i+1), slices.Delete(topics, i, i+1)
			}
		}
		for range 20 {
			other := randomPod(rng)
			of := x.topics(podEvents{pods: []*corev1.Pod{other}})
			for i, pod := range waiting {
				concerned := slices.ContainsFunc(topics[i], func(topic *labelTopic) bool { return slices.Contains(of, gangs.Topic(topic)) })
				if want := matters(t, other, pod); concerned != want {
					t.Fatalf("seed %d: concerned: %t, want %t: labels %v, %v, %v beside labels %v, %v", seed, concerned, want, pod.Labels, pod.Spec.Affinity, pod.Spec.TopologySpreadConstraints, other.Labels, other.Spec.Affinity)
				}
			}
		}
		for _, tracked := range topics {
			x.release(tracked)
		}
		if n := len(x.all) + len(x.byBucket) + len(x.pods); n > 0 {
			t.Fatalf("seed %d: %d entries are left", seed, n)
		}
	}
}

func TestTooManyPodEventsConcernAll(t *testing.T) {
	t.Parallel()
	e, x := podEvents{}, newLabelTopics()
	for range maxPodEvents {
		e.add(nil, nil, wrappers.MakePod("p", "ml").Obj())
	}
	if got := x.topics(e); len(got) > 0 {
		t.Errorf("topics %v, want none", got)
	}
	e.add(nil, wrappers.MakePod("p", "ml").Obj(), nil)
	if got := x.topics(e); !slices.Equal(got, []gangs.Topic{anyPod, anyVolume, anyDevice}) || len(e.pods) > 0 {
		t.Errorf("topics %v, %d pods, want those of all gangs, and no pod kept", got, len(e.pods))
	}
}

// BenchmarkTopicsOfPods: the topics of one batch of events, at 10,000 waiting gangs.
func BenchmarkTopicsOfPods(b *testing.B) {
	notIn := func(gang string, p *wrappers.PodWrapper) {
		matchesEvery(p, metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "gang", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"not-" + gang}}}})
	}
	for name, tc := range map[string]struct {
		events   int
		affinity func(gang string, p *wrappers.PodWrapper)
	}{
		"each gang near itself":                  {1, func(gang string, p *wrappers.PodWrapper) { p.TogetherWith("rack", "gang", gang) }},
		"an affinity that matches every pod":     {1, func(_ string, p *wrappers.PodWrapper) { matchesEvery(p, metav1.LabelSelector{}) }},
		"10,000 affinities that match every pod": {1, notIn},
		"the same, 100 pods":                     {100, notIn},
	} {
		b.Run(name, func(b *testing.B) {
			x := newLabelTopics()
			for i := range 10_000 {
				gang := fmt.Sprintf("g%05d", i)
				p := wrappers.MakePod(gang, "ml").Label("gang", gang)
				tc.affinity(gang, p)
				if _, err := x.track(p.Obj()); err != nil {
					b.Fatal(err)
				}
			}
			other := wrappers.MakePod("other", "ml").Label("app", "web").Label("tier", "front").Obj()
			for b.Loop() {
				x.topics(podEvents{pods: slices.Repeat([]*corev1.Pod{other}, tc.events)})
			}
		})
	}
}

func matchesEvery(p *wrappers.PodWrapper, selector metav1.LabelSelector) {
	p.Spec(func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "rack", LabelSelector: &selector}}}}
	})
}
