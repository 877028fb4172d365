// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

// TestDefaultPreemptionAsksAboutGangs runs the stock plugin on a full node: pods a and b with one GPU, c with two.
// The pods that may be preempted are given by name: single pods, sub-groups as "a/b", and gangs as "a+b". Pods far and
// away are on another node.
func TestDefaultPreemptionAsksAboutGangs(t *testing.T) {
	for name, tc := range map[string]struct {
		gpus      int64
		may       []string
		protected string
		extender  bool // an extender is asked about victims
		budgets   bool // a PodDisruptionBudget lets no pod on the other node end
		violating int
		deny      string // a pod that may no longer be preempted when it is about to be deleted
		want      []string
		message   string
	}{
		"pods that may be preempted singly":                           {gpus: 1, may: []string{"a"}, want: []string{"a"}},
		"a gang that is preempted whole for one of its pods":          {gpus: 1, may: []string{"a+c"}, want: []string{"a", "c"}},
		"a single pod that is not needed beside a gang is spared":     {gpus: 3, may: []string{"a+c", "b"}, want: []string{"a", "c"}},
		"a gang is kept if single pods are sufficient":                {gpus: 1, may: []string{"a+c", "b"}, want: []string{"b"}},
		"a gang and a single pod":                                     {gpus: 3, may: []string{"a+b", "c"}, want: []string{"a", "b", "c"}},
		"a gang on two nodes":                                         {gpus: 1, may: []string{"a+far"}, want: []string{"a", "far"}},
		"a sub-group on two nodes before a gang":                      {gpus: 1, may: []string{"a+b", "c/far"}, want: []string{"c", "far"}},
		"a single pod before a sub-group":                             {gpus: 1, may: []string{"a", "b/far"}, want: []string{"a"}},
		"a sub-group and the gang beside it":                          {gpus: 3, may: []string{"a/far", "c+away"}, want: []string{"a", "away", "c", "far"}},
		"a gang with a sub-group of it":                               {gpus: 3, may: []string{"a/far", "a+c+away+far"}, want: []string{"a", "away", "c", "far"}},
		"a sub-group of a gang that could go as a whole":              {gpus: 1, may: []string{"a/far", "a+c+away+far"}, want: []string{"a", "far"}},
		"a gang on two nodes is kept if an extender is asked":         {gpus: 1, may: []string{"a+far"}, extender: true, message: "an extender with a preemptVerb"},
		"a gang on one node may end if an extender is asked":          {gpus: 1, may: []string{"a+c"}, extender: true, want: []string{"a", "c"}},
		"the budget of a pod on another node":                         {gpus: 1, may: []string{"a+far"}, budgets: true, want: []string{"a", "far"}, violating: 1},
		"surplus of a gang that could go as a whole":                  {gpus: 1, may: []string{"a+b+c", "b"}, want: []string{"b"}},
		"nothing, and why":                                            {gpus: 1, protected: "they are a gang", message: "they are a gang"},
		"too little, and why":                                         {gpus: 2, may: []string{"a"}, protected: "they are a gang", message: "they are a gang"},
		"no protection is reported if preemption would not help":      {gpus: 9, may: []string{"a"}, protected: "they are a gang", message: "Insufficient nvidia.com/gpu"},
		"a victim whose gang has changed since it was chosen is kept": {gpus: 1, may: []string{"a"}, deny: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			pods := []*corev1.Pod{
				wrappers.MakePod("a", "ns").UID("a").GPUs(1).Node("n").Obj(),
				wrappers.MakePod("b", "ns").UID("b").GPUs(1).Node("n").Obj(),
				wrappers.MakePod("c", "ns").UID("c").GPUs(2).Node("n").Obj(),
			}
			elsewhere := []*corev1.Pod{
				wrappers.MakePod("far", "ns").UID("far").SubGroup("far").Node("m").Obj(),
				wrappers.MakePod("away", "ns").UID("away").SubGroup("away").Node("m").Obj(),
			}
			preemptor := wrappers.MakePod("high", "ns").UID("high").GPUs(tc.gpus).Priority(100).Obj()
			objects := []runtime.Object{wrappers.MakeNode("n").GPUs(4).Obj(), preemptor}
			for _, p := range pods {
				objects = append(objects, p)
			}
			c := newCluster(t, objects...)
			var mu sync.Mutex
			asked := sets.New[string]()
			hooks := PreemptionHooks{
				Victims: func(lower []*corev1.Pod, priority int32) PreemptionVictims {
					if len(lower) != 3 || priority != 100 {
						t.Errorf("asked about %d pods at priority %d", len(lower), priority)
					}
					return victimsByName(slices.Concat(pods, elsewhere), tc.may, tc.protected)
				},
				Preempt: func(victim *corev1.Pod, victims []*corev1.Pod, by *corev1.Pod) (bool, error) {
					mu.Lock()
					defer mu.Unlock()
					asked.Insert(fmt.Sprintf("%s of %d by %s", victim.Name, len(victims), by.Name))
					if victim.Name == tc.deny {
						return false, fmt.Errorf("no")
					}
					return victim.Name != "b", nil // only b is left to the plugin
				},
			}
			for range 2 { // the second call has no effect
				if err := GuardPreemption(c.f, hooks); err != nil {
					t.Fatal(err)
				}
			}
			var pl *defaultpreemption.DefaultPreemption
			for _, p := range c.f.PreEnqueuePlugins() {
				if dp, ok := p.(*defaultpreemption.DefaultPreemption); ok {
					pl = dp
				}
			}
			if tc.extender {
				pl.Evaluator.Interface.(*guardedPreemption).extenders = []fwk.Extender{preemptingExtender{}}
			}
			var budgets []*policyv1.PodDisruptionBudget
			if tc.budgets {
				budgets = append(budgets, &policyv1.PodDisruptionBudget{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns"},
					Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{v2alpha2.SubGroupLabel: "far"}}},
				})
			}
			state := framework.NewCycleState()
			if _, status, _ := c.f.RunPreFilterPlugins(c.ctx, state, preemptor); !status.IsSuccess() {
				t.Fatal(status)
			}
			victims, violating, status := pl.Evaluator.SelectVictimsOnNode(c.ctx, state, preemptor, c.nodes[0].Snapshot(), budgets)
			if violating != tc.violating {
				t.Errorf("%d evictions violate a budget, want %d", violating, tc.violating)
			}
			var names, want []string
			for _, v := range victims {
				names = append(names, v.Name)
				want = append(want, fmt.Sprintf("%s of %d by high", v.Name, len(victims)))
			}
			slices.Sort(names)
			if tc.deny != "" {
				tc.want = []string{tc.deny}
			}
			if diff := cmp.Diff(tc.want, names); diff != "" || !strings.Contains(status.Message(), tc.message) {
				t.Fatalf("victims, with %q (-want +got):\n%s", status.Message(), diff)
			}
			for _, v := range victims {
				err := pl.Executor.PreemptPod(context.Background(), candidate{victims, "n"}, preemptorOf{preemptor}, v, "test")
				if (err != nil) != (v.Name == tc.deny) {
					t.Errorf("preempting %s: %v", v.Name, err)
				}
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, sets.List(asked), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			var deleted []string
			for _, a := range c.f.ClientSet().(*fake.Clientset).Actions() {
				if d, ok := a.(clienttesting.DeleteAction); ok {
					deleted = append(deleted, d.GetName())
				}
			}
			if diff := cmp.Diff(slices.DeleteFunc(names, func(n string) bool { return n != "b" }), deleted, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("deleted by the plugin (-want +got):\n%s", diff)
			}
		})
	}
}

// victimsByName returns the pods that may be preempted, as TestDefaultPreemptionAsksAboutGangs gives them.
func victimsByName(pods []*corev1.Pod, may []string, protected string) PreemptionVictims {
	v := PreemptionVictims{Singly: sets.New[types.UID](), Protected: protected}
	seen := sets.New[string]()
	for _, separator := range []string{"", "/", "+"} {
		for _, text := range may {
			if separator == "" && strings.ContainsAny(text, "/+") || !strings.Contains(text, separator) {
				continue
			}
			if separator == "" {
				v.Singly.Insert(types.UID(text))
				seen.Insert(text)
				continue
			}
			var u PreemptionUnit
			for _, name := range strings.Split(text, separator) {
				p := pods[slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p.Name == name })]
				u.All = append(u.All, p)
				if p.Spec.NodeName == "n" && !seen.Has(name) {
					u.OnNode = append(u.OnNode, p)
				}
			}
			for _, p := range u.OnNode {
				seen.Insert(p.Name)
			}
			if separator == "/" {
				v.SubGroups = append(v.SubGroups, u)
			} else {
				v.Gangs = append(v.Gangs, u)
			}
		}
	}
	return v
}

// preemptingExtender is asked about the victims of every pod.
type preemptingExtender struct{ fwk.Extender }

func (preemptingExtender) SupportsPreemption() bool      { return true }
func (preemptingExtender) IsInterested(*corev1.Pod) bool { return true }

// candidate is a node with its victims.
type candidate struct {
	victims []*corev1.Pod
	node    string
}

func (c candidate) Victims() *extenderv1.Victims { return &extenderv1.Victims{Pods: c.victims} }
func (c candidate) Name() string                 { return c.node }

// preemptorOf represents a pod to the executor of preemptions.
type preemptorOf struct{ *corev1.Pod }

func (p preemptorOf) Pods() map[string]*corev1.Pod { return map[string]*corev1.Pod{p.Name: p.Pod} }

func (p preemptorOf) UID() types.UID        { return p.Pod.UID }
func (p preemptorOf) SchedulerName() string { return p.Spec.SchedulerName }
func (p preemptorOf) Obj() runtime.Object   { return p }
func (p preemptorOf) Priority() int32       { return *p.Spec.Priority }
func (p preemptorOf) Type() string          { return "pod" }

var (
	_ preemption.Candidate         = candidate{}
	_ preemption.ExecutorPreemptor = preemptorOf{}
)
