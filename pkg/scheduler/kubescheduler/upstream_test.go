// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"github.com/muster-project/muster/test/wrappers"
)

// TestMethodsOfEmbeddedInterfaces: types of this package embed interfaces of kube-scheduler and replace some of their
// methods. A method that a newer version adds passes them by: decide whether it must be replaced too, and add it to the
// list. The same for the fields of Scheduler, three of which are replaced.
func TestMethodsOfEmbeddedInterfaces(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind             reflect.Type
		replaced, passed string
	}{
		{reflect.TypeFor[queue.SchedulingQueue](), // Queue
			"Activate Add AddUnschedulableIfNotPresent Delete Done MoveAllToActiveOrBackoffQueue PendingPods Pop PopSpecificPod Update",
			// AssignedPodAdded and AssignedPodUpdated are called without SchedulerQueueingHints only, which CheckOrder requires.
			// A nomination of a gated pod is kept by the stock queue, and PatchPodStatus does not depend on where a pod waits.
			"AddNominatedPod AssignedPodAdded AssignedPodUpdated Close DeleteNominatedPodIfExists GetPod InFlightPods NominatedPodsForNode " +
				"PatchPodStatus PodsInActiveQ PodsInBackoffQ Run SchedulingCycle UnschedulablePods UpdateNominatedPod"},
		{reflect.TypeFor[cache.Cache](), // leavingCache
			"RemovePod", // a pod that is forgotten (ForgetPod) was never bound
			"AddNode AddPod AddPodGroupMember AssumePod BindPod Dump ForgetPod GetNode GetPod IsAssumedPod NodeCount PodCount PodGroupStates " +
				"RemoveNode RemovePodGroupMember UpdateNode UpdatePod UpdatePodGroupMember UpdateSnapshot"},
		{reflect.TypeFor[framework.Framework](), // lateFramework
			"EventRecorder",
			"APICacher APIDispatcher Activate AddNominatedPod AddPodInPreBind AddWaitingPod ClientSet Close DeleteNominatedPodIfExists " +
				"EnqueueExtensions Extenders GetNodeHint GetPodInPreBind GetWaitingPod HasFilterPlugins HasPostFilterPlugins HasScorePlugins " +
				"IterateOverWaitingPods KubeConfig ListPlugins NominatedPodsForNode Parallelizer PercentageOfNodesToScore PodGroupManager " +
				"PodGroupPostFilterPlugins PreEnqueuePlugins ProfileName QueueSortFunc RejectWaitingPod RemovePodInPreBind RunBindPlugins " +
				"RunFilterPlugins RunFilterPluginsWithNominatedPods RunPermitPlugins RunPlacementGeneratePlugins RunPlacementScorePlugins " +
				"RunPostBindPlugins RunPostFilterPlugins RunPreBindPlugins RunPreBindPreFlights RunPreFilterExtensionAddPod " +
				"RunPreFilterExtensionRemovePod RunPreFilterPlugins RunPreScorePlugins RunReservePluginsReserve RunReservePluginsUnreserve " +
				"RunScorePlugins SetAPICacher SetPodActivator SetPodNominator SharedCSIManager SharedDRAManager SharedInformerFactory SignPod " +
				"SnapshotSharedLister StoreScheduleResults UpdateNominatedPod WaitOnPermit WillWaitOnPermit"},
		{reflect.TypeFor[events.EventRecorderLogger](), "Eventf WithLogger", ""}, // lateRecorder
		{reflect.TypeFor[preemption.Interface](), // guardedPreemption
			"SelectVictimsOnNode", "CandidatesToVictimsMap GetOffsetAndNumCandidates OrderedScoreFuncs PodEligibleToPreemptOthers"},
	} {
		want := slices.Concat(strings.Fields(tc.replaced), strings.Fields(tc.passed))
		slices.Sort(want)
		var got []string
		for i := range tc.kind.NumMethod() {
			got = append(got, tc.kind.Method(i).Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("methods of %s (-reviewed +of this version):\n%s", tc.kind, diff)
		}
	}
	// Attach replaces NextPod, FailureHandler and SchedulingQueue; BeforeLeaving Cache; DelayScheduled the Profiles.
	want := strings.Fields("APIDispatcher Cache Extenders FailureHandler NextPod Profiles SchedulePod SchedulingQueue StopEverything")
	var got []string
	for kind, i := reflect.TypeFor[scheduler.Scheduler](), 0; i < kind.NumField(); i++ {
		if field := kind.Field(i); field.IsExported() {
			got = append(got, field.Name)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields of Scheduler (-reviewed +of this version):\n%s", diff)
	}
}

// TestBindPostsWhatTheStockBinderPosts compares the requests, apart from the annotations.
func TestBindPostsWhatTheStockBinderPosts(t *testing.T) {
	t.Parallel()
	pod := wrappers.MakePod("p", "ml").UID("u").Obj()
	posted := func(bind func(c *cluster) error) runtime.Object {
		c := newCluster(t, pod)
		var binding runtime.Object
		c.f.ClientSet().(*fake.Clientset).PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			binding = a.(clienttesting.CreateAction).GetObject()
			return true, binding, nil
		})
		if err := bind(c); err != nil {
			t.Fatal(err)
		}
		return binding
	}
	want := posted(func(c *cluster) error {
		binder, err := defaultbinder.New(c.ctx, nil, c.f)
		if err != nil {
			return err
		}
		return binder.(*defaultbinder.DefaultBinder).Bind(c.ctx, nil, pod, "n").AsError()
	})
	got := posted(func(c *cluster) error {
		return Bind(c.ctx, c.f, c.f.ClientSet(), pod, "n", map[string]string{"a": "b"})
	}).(*corev1.Binding)
	if got.Annotations["a"] != "b" {
		t.Errorf("annotations %v", got.Annotations)
	}
	got.Annotations = nil
	if diff := cmp.Diff(want, runtime.Object(got)); diff != "" {
		t.Errorf("(-stock +ours):\n%s", diff)
	}
}

// TestUpstreamDocument: the files and tests that docs/upstream.md names exist.
func TestUpstreamDocument(t *testing.T) {
	t.Parallel()
	const root = "../../../"
	text, err := os.ReadFile(root + "docs/upstream.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, folder := range []string{"pkg/scheduler/kubescheduler", "pkg/scheduler/gangadmission", "pkg/podgroup", "pkg/apis/config/profile", "pkg/scheduler", "test/integration/scheduler"} {
		files, err := filepath.Glob(root + folder + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(string(source), -1) {
				tests[name[1]] = true
			}
		}
	}
	named := regexp.MustCompile("`(Test[A-Z]\\w+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 10 {
		t.Errorf("%d tests are named", len(named))
	}
	for _, name := range named {
		if !tests[name[1]] {
			t.Errorf("there is no test %s", name[1])
		}
	}
}
