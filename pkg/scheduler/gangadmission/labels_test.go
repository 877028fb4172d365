// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
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
	info := func(pod *corev1.Pod) *framework.PodInfo {
		i, err := framework.NewPodInfo(pod)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	selects := func(terms []fwk.AffinityTerm, pod *corev1.Pod) bool {
		return slices.ContainsFunc(terms, func(term fwk.AffinityTerm) bool { return term.Matches(pod, labels.Set{}) })
	}
	mine := info(waiting)
	for _, c := range waiting.Spec.TopologySpreadConstraints {
		s, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
		if err != nil {
			t.Fatal(err)
		}
		if c.WhenUnsatisfiable == corev1.DoNotSchedule && waiting.Namespace == other.Namespace && s.Matches(labels.Set(other.Labels)) {
			return true
		}
	}
	return selects(mine.GetRequiredAffinityTerms(), other) || selects(mine.GetRequiredAntiAffinityTerms(), other) ||
		selects(info(other).GetRequiredAntiAffinityTerms(), waiting)
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
		e.add(nil, wrappers.MakePod("p", "ml").Obj())
	}
	if got := x.topics(e); len(got) > 0 {
		t.Errorf("topics %v, want none", got)
	}
	e.add(wrappers.MakePod("p", "ml").Obj(), nil)
	if got := x.topics(e); !slices.Equal(got, []gangs.Topic{anyPod}) || len(e.pods) > 0 {
		t.Errorf("topics %v, %d pods, want any pod, and none kept", got, len(e.pods))
	}
}

// TestGangIsWokenByThePodsThatMatterToIt: the gang is refused because of labels of other pods, although there is room. An
// event of another pod does not wake it.
func TestGangIsWokenByThePodsThatMatterToIt(t *testing.T) {
	rack := func(selector string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: "rack", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": selector}}}
	}
	avoids := func(p *wrappers.PodWrapper, selector string) *wrappers.PodWrapper {
		return p.Spec(func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{rack(selector)}}}
		})
	}
	for name, tc := range map[string]struct {
		before *wrappers.PodWrapper // bound
		gang   func(p *wrappers.PodWrapper)
		change func(c *cluster)
	}{
		"a pod that it must be near is bound": {
			gang:   func(p *wrappers.PodWrapper) { p.TogetherWith("rack", "app", "db") },
			change: func(c *cluster) { c.pod(wrappers.MakePod("db", "ml").Label("app", "db")) },
		},
		"a pod that it must not be near leaves": {
			before: wrappers.MakePod("db", "ml").Label("app", "db"),
			gang:   func(p *wrappers.PodWrapper) { avoids(p, "db") },
			change: func(c *cluster) { c.deletePod("db") },
		},
		"a pod that must not be near it leaves": {
			before: avoids(wrappers.MakePod("db", "ml"), "web"),
			gang:   func(p *wrappers.PodWrapper) { p.Label("app", "web") },
			change: func(c *cluster) { c.deletePod("db") },
		},
		"a pod that it must not be near changes its labels": {
			before: wrappers.MakePod("db", "ml").Label("app", "db"),
			gang:   func(p *wrappers.PodWrapper) { avoids(p, "db") },
			change: func(c *cluster) {
				pod, err := c.client.CoreV1().Pods("ml").Get(c.ctx, "db", metav1.GetOptions{})
				if err != nil {
					c.t.Fatal(err)
				}
				pod.Labels["app"] = "none"
				if _, err := c.client.CoreV1().Pods("ml").Update(c.ctx, pod, metav1.UpdateOptions{}); err != nil {
					c.t.Fatal(err)
				}
			},
		},
		"a rack gets a node": {
			before: wrappers.MakePod("db", "ml").Label("app", "db"),
			gang:   func(p *wrappers.PodWrapper) { avoids(p, "db") },
			change: func(c *cluster) { c.node(wrappers.MakeNode("n1").Label("rack", "r1").GPUs(8)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t).node(wrappers.MakeNode("n0").Label("rack", "r0").GPUs(8)).run()
			if tc.before != nil {
				c.pod(tc.before).eventually("db bound", func() bool { return len(c.boundOf("db")) == 1 })
			}
			pods := members("a", 2)
			for _, p := range pods {
				tc.gang(p)
			}
			c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(2).Obj())
			c.pod(pods...).refused("a")
			before := 0
			for i := range 6 {
				if i == 1 { // an event from before the refusal may have caused another attempt
					before = c.attempts("a")
				}
				other := fmt.Sprintf("other-%d", i)
				c.pod(wrappers.MakePod(other, "ml").Label("app", "other")).eventually(other+" bound", func() bool { return len(c.boundOf(other)) == 1 })
			}
			if n := c.attempts("a") - before; n > 0 {
				t.Errorf("tried %d times because of pods that do not matter to it", n)
			}
			tc.change(c)
			c.wholeOf("a", 2)
		})
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
