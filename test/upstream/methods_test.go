// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// TestMethodsOfEmbeddedInterfaces: types of pkg/scheduler/kubescheduler embed interfaces of kube-scheduler and replace
// some of their methods. A method that a newer version adds passes them by: decide whether it must be replaced too, and
// add it to the list. The same for the fields of Scheduler. The test is not in that package, so that it can say so
// before that compiles.
func TestMethodsOfEmbeddedInterfaces(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind             reflect.Type
		replaced, passed string
	}{
		{reflect.TypeFor[queue.SchedulingQueue](), // Queue
			"Activate Add AddUnschedulablePodIfNotPresent Delete Done MoveAllToActiveOrBackoffQueue PendingPods Pop Update",
			// A nomination of a gated pod is kept by the stock queue, and PatchPodStatus does not depend on where a pod
			// waits. What concerns the groups of kube-scheduler is called only with gates that RefuseGates refuses.
			"AddNominatedPod Close DeleteNominatedPodIfExists GetPod InFlightPods NominatedPodsForNode PatchPodStatus PodsInActiveQ " +
				"PodsInBackoffQ Run SchedulingCycle UnschedulablePods UpdateNominatedPod " +
				"AddAttemptedPodGroupIfNeeded AddCompositePodGroup AddPodGroup DeleteCompositePodGroup DeletePodGroup GetPodGroup " +
				"IncompletePodGroupPodsPods PendingPodGroupPods UpdateCompositePodGroup UpdatePodGroup"},
		{reflect.TypeFor[cache.Cache](), // leavingCache, claimCounts
			// A pod that is forgotten (ForgetPod), or deleted while it is assumed (RemoveAssumedPod), was not seen
			// bound: no reservation follows it, and the registry gives back its place when its cycle or binding fails.
			"AddPod AssumePod ForgetPod RemoveAssumedPod RemovePod UpdatePod UpdateSnapshot",
			"AddCompositePodGroup AddPodGroup BuildHierarchySnapshotFromPod CompositePodGroupStates CompositePodGroups GetRootKeyForGroup " +
				"PodGroups RemoveCompositePodGroup RemovePodGroup UpdateCompositePodGroup UpdatePodGroup " +
				"AddNode AddPodGroupMember BindPod Dump GetNode GetPod IsAssumedPod NodeCount PodCount PodGroupStates " +
				"RemoveNode RemovePodGroupMember UpdateNode UpdatePodGroupMember"},
		{reflect.TypeFor[framework.Framework](), // memberFramework
			"EventRecorder RunPostBindPlugins RunPreBindPlugins RunPreBindPreFlights WillWaitOnPermit",
			"APICacher APIDispatcher Activate AddNominatedPod AddPodInPreBind AddWaitingPod ClientSet Close DeleteNominatedPodIfExists " +
				"EnqueueExtensions Extenders GetNodeHint GetPodInPreBind GetWaitingPod HasFilterPlugins HasPostFilterPlugins HasScorePlugins " +
				"IterateOverWaitingPods KubeConfig ListPlugins NominatedPodsForNode Parallelizer PercentageOfNodesToScore PodGroupManager " +
				"PodGroupPostFilterPlugins PreEnqueuePlugins ProfileName QueueSortFunc RejectWaitingPod RemovePodInPreBind RunBindPlugins " +
				"RunFilterPlugins RunFilterPluginsWithNominatedPods RunPermitPlugins RunPlacementGeneratePlugins RunPlacementScorePlugins " +
				"RunPostFilterPlugins RunPreFilterExtensionAddPod " +
				"RunPreFilterExtensionRemovePod RunPreFilterPlugins RunPreScorePlugins RunReservePluginsReserve RunReservePluginsUnreserve " +
				"RunScorePlugins SetAPICacher SetPodActivator SetPodNominator SharedCSIManager SharedDRAManager SharedInformerFactory SignPod " +
				"MutableSnapshotSharedLister NormalizeScores RunPlacementFeasiblePlugins RunPodGroupPostFilterPlugins RunRawScorePlugins " +
				"SnapshotSharedLister StoreScheduleResults UpdateNominatedPod WaitOnPermit"},
		{reflect.TypeFor[events.EventRecorderLogger](), "Eventf WithLogger", ""}, // lateRecorder
	} {
		got := sets.New[string]()
		for i := range tc.kind.NumMethod() {
			got.Insert(tc.kind.Method(i).Name)
		}
		compare(t, "methods of "+tc.kind.String(), sets.New(slices.Concat(strings.Fields(tc.replaced), strings.Fields(tc.passed))...), got)
	}
	// Attach replaces NextEntity, FailureHandler and SchedulingQueue; BeforeLeaving Cache; WrapProfiles the Profiles.
	want := sets.New(strings.Fields("APIDispatcher Cache Extenders FailureHandler NextEntity Profiles SchedulePod SchedulingQueue StopEverything")...)
	got := sets.New[string]()
	for kind, i := reflect.TypeFor[scheduler.Scheduler](), 0; i < kind.NumField(); i++ {
		if field := kind.Field(i); field.IsExported() {
			got.Insert(field.Name)
		}
	}
	compare(t, "fields of Scheduler", want, got)
}

func compare(t *testing.T, what string, reviewed, found sets.Set[string]) {
	t.Helper()
	if !reviewed.Equal(found) {
		t.Errorf("%s: new are %v, and gone %v", what, sets.List(found.Difference(reviewed)), sets.List(reviewed.Difference(found)))
	}
}
