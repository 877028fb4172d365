// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/pkg/scheduler/ledger"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/wrappers"
)

// gathered returns Muster's metrics that the scheduler serves now, by name.
func gathered(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]*dto.MetricFamily{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "muster_") {
			ours[f.GetName()] = f
		}
	}
	return ours
}

// value returns that of a series whose labels have these values, in any order, NaN-free. ok is false if there is none.
func value(f *dto.MetricFamily, labels ...string) (v float64, ok bool) {
	slices.Sort(labels)
	for _, m := range f.GetMetric() {
		var have []string
		for _, l := range m.GetLabel() {
			have = append(have, l.GetValue())
		}
		if slices.Sort(have); slices.Equal(have, labels) {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue(), true
		}
	}
	return 0, false
}

// names of metrics that are described, also those without series.
var described = regexp.MustCompile(`fqName: "(muster_\w+)"`)

// TestMetricsAreWellFormed lints every metric.
func TestMetricsAreWellFormed(t *testing.T) {
	RegisterMetrics()
	const gpu = "example.com/linted-gpu"
	for _, c := range []*metrics.CounterVec{planRefusals, plansAborted, preemptions, preemptionVictims, preemptionsEnded} {
		c.WithLabelValues("linted")
	}
	plans.WithLabelValues("minimum", "linted")
	gpuSeconds.WithLabelValues(gpu, "working")
	for _, h := range []*metrics.HistogramVec{planDuration, preemptionDuration, readyDuration} {
		h.WithLabelValues("linted")
	}
	admissionDuration.WithLabelValues("linted", "0")
	for _, g := range []*metrics.GaugeVec{waitingGPUs, oldestWaiting} {
		g.WithLabelValues("linted")
	}
	waitingGangs.WithLabelValues("linted", "1")
	reportKeptRooms(nil)
	startablePods.WithLabelValues(gpu, "1")
	c := make(chan *prometheus.Desc, 1000)
	legacyregistry.Registerer().(prometheus.Collector).Describe(c)
	close(c)
	served := gathered(t)
	for desc := range c {
		if m := described.FindStringSubmatch(desc.String()); m != nil && served[m[1]] == nil {
			t.Errorf("%s has no series: this test must make one", m[1])
		}
	}
	var families []*dto.MetricFamily
	for _, f := range served {
		families = append(families, f)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 || len(families) < 20 {
		t.Errorf("promlint of %d metrics: %v %v", len(families), problems, err)
	}
}

// TestTheLedgerOfACluster follows GPUs from free to working, and compares their sum with what nodes offer.
func TestTheLedgerOfACluster(t *testing.T) {
	c := newCluster(t).node(wrappers.MakeNode("a").GPUs(8)).node(wrappers.MakeNode("b").GPUs(8)).node(wrappers.MakeNode("cordoned").GPUs(8).Unschedulable()).run()
	states := func() map[string]int64 {
		l := ledgerOf(c.gangs.backlog.GPUs(klog.Background()), c.gangs.registry.Holding())
		got, sum := map[string]int64{}, int64(0)
		for s, n := range l[string(wrappers.GPUResource)].GPUs {
			sum += n
			if n > 0 {
				got[ledger.State(s).String()] = n
			}
		}
		if sum != 24 {
			t.Errorf("the states sum to %d GPUs, want 24: %v", sum, got)
		}
		return got
	}
	become := func(what string, want map[string]int64) {
		t.Helper()
		c.eventually(what, func() bool { return cmp.Equal(states(), want) })
	}
	become("nobody wants them", map[string]int64{"free-unwanted": 24})
	c.gang("small", 6).wholeOf("small", 6)
	become("a gang that is bound starts", map[string]int64{"starting": 6, "free-unwanted": 18})
	for i := range 6 {
		c.updatePod(fmt.Sprintf("small-%d", i), func(pod *corev1.Pod) {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
		})
	}
	become("a gang that is ready works", map[string]int64{"working": 6, "free-unwanted": 18})
	c.bigGang("large", 2).refused("large")
	become("a gang waits for two whole nodes", map[string]int64{"working": 6, "free-usable": 8, "free-unusable": 10})
	c.lingering = true
	if err := c.client.CoreV1().Pods("ml").Delete(c.ctx, "small-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	become("a pod ends", map[string]int64{"terminating": 1, "below-minimum": 5, "free-usable": 8, "free-unusable": 10})
}

// TestAccounts counts GPU seconds, and reports who waits.
func TestAccounts(t *testing.T) {
	RegisterMetrics()
	a, now := newAccounts(), time.Unix(1_000_000, 0)
	const gpu = "example.com/accounts-gpu"
	room := func(working, free int64) ledger.Ledger {
		l := ledger.Ledger{}
		l.Add(ledger.Room{Resource: gpu, Allocatable: working + free, Used: []ledger.Use{{State: ledger.Working, GPUs: working}}, Wanted: -1, Open: true})
		return l
	}
	a.reportGPUs(room(8, 8), now) // since when is not known
	a.reportGPUs(room(8, 8), now.Add(5*time.Second))
	a.reportGPUs(room(12, 4), now.Add(15*time.Second))
	a.reportGPUs(room(12, 4), now.Add(10*time.Second)) // the clock was set back
	for state, want := range map[string]float64{"working": 5*8 + 10*12, "free-unwanted": 5*8 + 10*4, "partial": 0} {
		if got, ok := value(gathered(t)["muster_gpu_seconds_total"], gpu, state); !ok || got != want {
			t.Errorf("%s: %v GPU seconds (%t), want %v", state, got, ok, want)
		}
	}
	for size, want := range map[string]float64{"1": 4, "2": 2, "4": 1, "8": 0} {
		if got, ok := value(gathered(t)["muster_startable_pods"], gpu, size); !ok || got != want {
			t.Errorf("%v pods of %s GPUs would start (%t), want %v", got, size, ok, want)
		}
	}

	waiting := []gangs.Unsatisfied{
		{Reason: v2alpha2.ReasonFragmented, GPUs: 16, Lacks: 16, Since: now.Add(-time.Hour)}, {Reason: v2alpha2.ReasonFragmented, GPUs: 64, Lacks: 8, Since: now.Add(-time.Minute)},
		{Reason: v2alpha2.ReasonGated, GPUs: 1, Lacks: 1}, {Reason: v2alpha2.ReasonInvalid},
	}
	a.reportWaiting(waiting, now)
	check := func(name string, want float64, labels ...string) {
		t.Helper()
		if got, ok := value(gathered(t)[name], labels...); !ok || got != want {
			t.Errorf("%s%v is %v (%t), want %v", name, labels, got, ok, want)
		}
	}
	check("muster_waiting_gangs", 2, "Fragmented", "9-64")
	check("muster_waiting_gangs", 1, "Gated", "1")
	check("muster_waiting_gangs", 1, "Invalid", "0")
	check("muster_waiting_gpus", 24, "Fragmented")
	check("muster_oldest_waiting_gang_age_seconds", 3600, "9-64")
	check("muster_oldest_waiting_gang_age_seconds", 0, "1")
	a.reportWaiting(nil, now)
	check("muster_waiting_gangs", 0, "Fragmented", "9-64")
	check("muster_waiting_gpus", 0, "Fragmented")
	check("muster_oldest_waiting_gang_age_seconds", 0, "9-64")
}

// TestKeptRoomsHaveAPurpose: each room counts once, also one that is kept beside others on its node.
func TestKeptRoomsHaveAPurpose(t *testing.T) {
	RegisterMetrics()
	now, set := time.Unix(1_000_000, 0), reservations.NewSet()
	gang := func(name string) reservations.Owner {
		return reservations.Owner{Gang: gangs.Key{Namespace: "ml", Name: name}, Leaf: reservations.EveryLeaf}
	}
	for _, x := range []reservations.Reservation{
		{Owner: gang("preemptor"), Node: "a"}, {Owner: gang("preemptor"), Node: "b"}, {Owner: gang("old"), Node: "b", Promised: true},
		{Owner: reservations.Owner{Gang: gang("lost").Gang}, Node: "b", Pod: wrappers.MakePod("gone", "ml").UID("gone").Obj()},
	} {
		x.Amount = reservations.Amount{Pods: 1}
		set.Reserve(x, now.Add(time.Hour), now)
	}
	for view, want := range map[*reservations.View]map[string]float64{
		set.View(): {"preemptor": 2, "reservation": 1, "replacement": 1}, nil: {"preemptor": 0, "reservation": 0, "replacement": 0},
	} {
		reportKeptRooms(view)
		for purpose, n := range want {
			if got, ok := value(gathered(t)["muster_kept_rooms"], purpose); !ok || got != n {
				t.Errorf("%v rooms for a %s (%t), want %v", got, purpose, ok, n)
			}
		}
	}
}

func TestClasses(t *testing.T) {
	t.Parallel()
	for gpus, want := range map[int64]string{-1: "0", 0: "0", 1: "1", 2: "2-8", 8: "2-8", 9: "9-64", 64: "9-64", 65: "65-512", 512: "65-512", 513: "513+", 1 << 40: "513+"} {
		if got := sizeClass(gpus); got != want || !slices.Contains(sizeClasses[:], got) {
			t.Errorf("%d GPUs are %s, want %s", gpus, got, want)
		}
	}
	for priority, want := range map[int32]string{-1: "negative", 0: "0", 1: "1-99", 99: "1-99", 100: "100-999", 999: "100-999", 1000: "1000-9999", 10000: "10000+", 2000000000: "10000+"} {
		if got := priorityBand(priority); got != want {
			t.Errorf("priority %d is in %s, want %s", priority, got, want)
		}
	}
}

// TestEveryReasonHasALabel compares with the constants of the API.
func TestEveryReasonHasALabel(t *testing.T) {
	t.Parallel()
	types, err := os.ReadFile("../../apis/scheduling/v2alpha2/types.go")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(types), "// Reasons of conditions that are False.")
	text, _, _ = strings.Cut(text, "// Reasons of conditions that are True.")
	want := sets.New[v2alpha2.Reason]()
	for _, m := range regexp.MustCompile(`Reason = "(\w+)"`).FindAllStringSubmatch(text, -1) {
		want.Insert(v2alpha2.Reason(m[1]))
	}
	if diff := cmp.Diff(want, waitReasons); diff != "" || len(want) < 10 {
		t.Errorf("reasons (-API +label):\n%s", diff)
	}
	if got := reasonLabel("made up by a user"); got != otherReason {
		t.Errorf("a reason that does not exist has the label %q", got)
	}
}

// TestTheNumberOfSeriesIsBounded makes and deletes 10,000 gangs of all kinds: afterwards there are as many series as
// after 500.
func TestTheNumberOfSeriesIsBounded(t *testing.T) {
	RegisterMetrics()
	now := time.Unix(1_000_000, 0)
	r := gangs.New()
	r.Configure(gangs.Options{Admitted: observeAdmitted, Ready: observeReady})
	r.AddProfile(wrappers.SchedulerName)
	r.SetSynced(now)
	r.SetLeading()
	a := newAccounts()
	reasons := []v2alpha2.Reason{"", v2alpha2.ReasonFragmented, v2alpha2.ReasonInsufficientGPUs, v2alpha2.ReasonGated, v2alpha2.ReasonPreempting}
	live := func(from, to int) {
		for i := from; i < to; i++ {
			now = now.Add(time.Second)
			name := fmt.Sprintf("g%05d", i)
			group := wrappers.MakePodGroup(name, fmt.Sprintf("user%d", i)).UID(name).MinMember(1).Obj()
			if group.Status.Reason = reasons[i%len(reasons)]; i%7 == 0 {
				group.Status.Reason = v2alpha2.Reason(name) // by a user with more rights than needed
			}
			r.SetGroup(group, now)
			pod := wrappers.MakePod(name, group.Namespace).UID(name).Gang(name).GPUs([]int64{0, 1, 4, 16, 100, 1000}[i%6]).Priority([]int32{-5, 0, 10, 100, 1000, 20000}[i/6%6])
			r.SetPod(pod.Obj(), now)
			if i%10 == 0 {
				a.reportWaiting(r.Unsatisfied(), now)
			}
			r.SetPod(pod.Node("n").Obj(), now)
			r.SetPod(pod.Status(func(s *corev1.PodStatus) {
				s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			}).Obj(), now)
			a.reportGPUs(ledgerOf([]kubescheduler.NodeGPUs{{Room: ledger.Room{Resource: "example.com/series-gpu", Allocatable: 8}, Pods: []kubescheduler.PodGPUs{{UID: pod.Obj().UID, GPUs: 1}}}}, r.Holding()), now)
			r.RemovePod(pod.Obj().UID, now)
			r.RemoveGroup(gangs.Key{Namespace: group.Namespace, Name: name}, now)
			r.Tick(now.Add(10 * time.Second))
		}
	}
	series := func() map[string]int {
		n := map[string]int{}
		for name, f := range gathered(t) {
			n[name] = len(f.GetMetric())
		}
		return n
	}
	live(0, 500)
	few := series()
	live(500, 10_000)
	if diff := cmp.Diff(few, series()); diff != "" {
		t.Errorf("series (-500 gangs +10,000 gangs):\n%s", diff)
	}
	if few["muster_gang_admission_duration_seconds"] < 36 || few["muster_gang_ready_duration_seconds"] < 6 || few["muster_waiting_gangs"] < 6 {
		t.Errorf("the gangs were not observed: %v", few)
	}
}

// BenchmarkAccount is what one look costs at 5,000 nodes with 40,000 pods of 5,000 gangs, beside 2,000 gangs that wait.
func BenchmarkAccount(b *testing.B) {
	now := time.Unix(1_000_000, 0)
	c := newCluster(b, func(c *cluster, _ *bool, _ *config.GangAdmissionArgs) { c.clock = testingclock.NewFakeClock(now) }) // nothing else runs
	logger := klog.Background()
	r := c.gangs.registry
	r.SetSynced(now)
	for i := range 5000 {
		node := fmt.Sprintf("n%d", i)
		c.sched.Cache.AddNode(logger, wrappers.MakeNode(node).GPUs(8).Obj())
		gang := fmt.Sprintf("g%d", i)
		r.SetGroup(wrappers.MakePodGroup(gang, "ml").UID(gang).MinMember(8).Obj(), now)
		for k := range 8 {
			name := fmt.Sprintf("%s-%d", gang, k)
			pod := wrappers.MakePod(name, "ml").UID(name).Gang(gang).GPUs(1).Node(node).Status(func(s *corev1.PodStatus) {
				if i%10 > 0 {
					s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
				}
			}).Obj()
			if err := c.sched.Cache.AddPod(logger, pod); err != nil {
				b.Fatal(err)
			}
			r.SetPod(pod, now)
		}
	}
	for i := range 2000 {
		gang := fmt.Sprintf("w%d", i)
		r.SetGroup(wrappers.MakePodGroup(gang, "ml").UID(gang).MinMember(2).Obj(), now)
		for _, pod := range members(gang, 2) {
			r.SetPod(pod.UID(pod.Obj().Name).Obj(), now)
		}
	}
	a := newAccounts()
	c.gangs.account(logger, a, now)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(5 * time.Second)
		c.gangs.account(logger, a, now)
	}
}

// updatePod changes a pod, as its kubelet does.
func (c *cluster) updatePod(name string, change func(*corev1.Pod)) {
	c.t.Helper()
	pod, err := c.client.CoreV1().Pods("ml").Get(c.ctx, name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	change(pod)
	if _, err := c.client.CoreV1().Pods("ml").Update(c.ctx, pod, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}
