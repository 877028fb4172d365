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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"github.com/muster-project/muster/test/wrappers"
)

// TestDefaultPreemptionAsksAboutGangs runs the stock plugin on a full node: pods a and b with one GPU, c with two.
// The pods that may be preempted are given by name: single pods, and gangs as "a+b".
func TestDefaultPreemptionAsksAboutGangs(t *testing.T) {
	for name, tc := range map[string]struct {
		gpus      int64
		may       []string
		protected string
		deny      string // a pod that may no longer be preempted when it is about to be deleted
		want      []string
		message   string
	}{
		"pods that may be preempted singly":                           {gpus: 1, may: []string{"a"}, want: []string{"a"}},
		"a gang that is preempted whole for one of its pods":          {gpus: 1, may: []string{"a+c"}, want: []string{"a", "c"}},
		"a gang is kept if single pods are sufficient":                {gpus: 1, may: []string{"a+c", "b"}, want: []string{"b"}},
		"a gang and a single pod":                                     {gpus: 3, may: []string{"a+b", "c"}, want: []string{"a", "b", "c"}},
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
			preemptor := wrappers.MakePod("high", "ns").UID("high").GPUs(tc.gpus).Priority(100).Obj()
			objects := []runtime.Object{wrappers.MakeNode("n").GPUs(4).Obj(), preemptor}
			for _, p := range pods {
				objects = append(objects, p)
			}
			c := newCluster(t, objects...)
			var mu sync.Mutex
			asked, done := sets.New[string](), sets.New[string]()
			hooks := PreemptionHooks{
				Victims: func(lower []*corev1.Pod, priority int32) (sets.Set[types.UID], [][]*corev1.Pod, string) {
					if len(lower) != 3 || priority != 100 {
						t.Errorf("asked about %d pods at priority %d", len(lower), priority)
					}
					singly, whole := sets.New[types.UID](), [][]*corev1.Pod(nil)
					for _, names := range tc.may {
						if !strings.Contains(names, "+") {
							singly.Insert(types.UID(names))
							continue
						}
						var gang []*corev1.Pod
						for _, p := range pods {
							if strings.Contains(names, p.Name) {
								gang = append(gang, p)
							}
						}
						whole = append(whole, gang)
					}
					return singly, whole, tc.protected
				},
				Preempt: func(victim *corev1.Pod, victims sets.Set[types.UID], node string, by *corev1.Pod) (func(), error) {
					mu.Lock()
					defer mu.Unlock()
					asked.Insert(fmt.Sprintf("%s of %d on %s by %s", victim.Name, len(victims), node, by.Name))
					if victim.Name == tc.deny {
						return nil, fmt.Errorf("no")
					}
					return func() {
						mu.Lock()
						defer mu.Unlock()
						done.Insert(victim.Name)
					}, nil
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
			state := framework.NewCycleState()
			if _, status, _ := c.f.RunPreFilterPlugins(c.ctx, state, preemptor); !status.IsSuccess() {
				t.Fatal(status)
			}
			victims, _, status := pl.Evaluator.SelectVictimsOnNode(c.ctx, state, preemptor, c.nodes[0].Snapshot(), nil)
			var names, want []string
			for _, v := range victims {
				names = append(names, v.Name)
				want = append(want, fmt.Sprintf("%s of %d on n by high", v.Name, len(victims)))
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
			if diff := cmp.Diff(slices.DeleteFunc(names, func(n string) bool { return n == tc.deny }), sets.List(done), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("done (-want +got):\n%s", diff)
			}
		})
	}
}

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
