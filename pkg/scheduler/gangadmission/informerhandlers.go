// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
)

// addHandlers makes the registry observe the objects, and returns what reports that it has observed those that exist.
func (g *Gangs) addHandlers(logger klog.Logger, pods, nodes, ended, groups, classes cache.SharedInformer) ([]cache.InformerSynced, error) {
	var synced []cache.InformerSynced
	for _, x := range []struct {
		informer cache.SharedInformer
		handler  cache.ResourceEventHandler
	}{
		{pods, g.podHandler(logger)},
		{nodes, g.nodeHandler()},
		{ended, g.endedHandler(logger)},
		{groups, g.groupHandler(logger)},
		{classes, g.classHandler()}, // a leader's rank is fixed when it enters the queue
	} {
		registration, err := x.informer.AddEventHandler(x.handler)
		if err != nil {
			return nil, err
		}
		synced = append(synced, registration.HasSynced)
	}
	return synced, nil
}

// newEndedPods returns an informer of the pods that Succeeded or Failed, and its factory. The scheduler's pod informer
// excludes finished pods: for its handlers a completion or a failure looks like a deletion.
func newEndedPods(client kubernetes.Interface, transform cache.TransformFunc) (informers.SharedInformerFactory, cache.SharedIndexInformer, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = endedPods }),
		informers.WithTransform(func(obj any) (any, error) {
			if obj, err := transform(obj); err != nil {
				return obj, err
			}
			return stripEndedPod(obj)
		}))
	informer := factory.Core().V1().Pods().Informer()
	return factory, informer, informer.AddIndexers(cache.Indexers{failedIndex: byFailedGang})
}

// readPod is the transform of the pods that are read.
func (g *Gangs) readPod(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok && g.noWorkloads {
		membership.LeaveWorkload(pod)
	}
	return withoutManagedFields(obj)
}

// failedIndex is the name of the index of failed pods by PodGroup.
const failedIndex = "failedByPodGroup"

func byFailedGang(obj any) ([]string, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Status.Phase != corev1.PodFailed || membership.Group(pod) == "" {
		return nil, nil
	}
	return []string{pod.Namespace + "/" + membership.Group(pod)}, nil
}

// failedPods returns a function that returns the failed pods that name a PodGroup.
func failedPods(ended cache.SharedIndexInformer) func(gangs.Key) []*corev1.Pod {
	return func(key gangs.Key) []*corev1.Pod {
		objects, err := ended.GetIndexer().ByIndex(failedIndex, key.String())
		if err != nil {
			return nil
		}
		pods := make([]*corev1.Pod, 0, len(objects))
		for _, object := range objects {
			pods = append(pods, object.(*corev1.Pod))
		}
		return pods
	}
}

// endedPods selects pods that Succeeded or Failed; field selectors have no "or".
var endedPods = fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodPending)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodRunning)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodUnknown)),
).String()

// withoutManagedFields drops the managed fields, which no code here reads and which may be most of a node. The
// scheduler's pod informer does the same.
func withoutManagedFields(obj any) (any, error) {
	if object, ok := obj.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	return obj, nil
}

var keptAnnotations = append([]string{v2alpha2.BoundForAnnotation}, membership.Annotations...)

// stripEndedPod drops all fields of a finished pod except those needed to count it as completed (docs/decisions, G9),
// and those of a failed member that say how it ended.
func stripEndedPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Labels: pod.Labels, OwnerReferences: pod.OwnerReferences, CreationTimestamp: pod.CreationTimestamp,
			DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName, SchedulerName: pod.Spec.SchedulerName, Priority: pod.Spec.Priority,
			SchedulingGroup: pod.Spec.SchedulingGroup},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	for _, k := range keptAnnotations {
		if v, ok := pod.Annotations[k]; ok {
			if kept.Annotations == nil {
				kept.Annotations = map[string]string{}
			}
			kept.Annotations[k] = v
		}
	}
	if pod.Status.Phase == corev1.PodFailed && isMember(pod) {
		kept.Status = podgroup.FailedStatus(pod)
	}
	return kept, nil
}

func (g *Gangs) podHandler(logger klog.Logger) cache.ResourceEventHandler {
	set := func(pod *corev1.Pod) { g.apply(logger, g.registry.SetPod(pod, g.clock.Now())) }
	add := func(pod *corev1.Pod) {
		set(pod)
		if g.profiles[pod.Spec.SchedulerName] != nil {
			g.reporter.AddPod(pod)
		}
	}
	update := func(pod *corev1.Pod) {
		set(pod)
		g.recheckGates(logger, pod.UID)
	}
	return handlerOfPods(add, update, func(pod *corev1.Pod) {
		if pod.Spec.NodeName != "" && !isMember(pod) {
			g.registry.RecordPlainPodGone(pod.UID)
		}
		g.apply(logger, g.registry.RemovePod(pod.UID, g.clock.Now()))
	})
}

func (g *Gangs) endedHandler(logger klog.Logger) cache.ResourceEventHandler {
	add := func(pod *corev1.Pod) {
		if pod.Status.Phase == corev1.PodFailed {
			g.apply(logger, g.registry.RemoveFailedPod(pod.UID, g.clock.Now()))
			return
		}
		g.apply(logger, g.registry.SetPod(pod, g.clock.Now()))
	}
	return handlerOfPods(add, func(*corev1.Pod) {}, func(pod *corev1.Pod) {
		g.apply(logger, g.registry.RemoveSucceededPod(pod.UID, g.clock.Now()))
		if pod.Status.Phase == corev1.PodFailed && isMember(pod) {
			// The registry does not know it any more, but the status may name it.
			g.reporter.MarkChanged(gangs.Key{Namespace: pod.Namespace, Name: membership.Group(pod)})
		}
	})
}

// handlerOfPods returns a handler that calls the functions for pods. After an interrupted watch the informer compares
// names, so a pod that was deleted and created again in the meantime (for example by a StatefulSet) appears as an
// update: it is removed and added.
func handlerOfPods(add, update, remove func(*corev1.Pod)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { add(obj.(*corev1.Pod)) },
		UpdateFunc: func(oldObj, newObj any) {
			before, after := oldObj.(*corev1.Pod), newObj.(*corev1.Pod)
			if before.UID == after.UID {
				update(after)
				return
			}
			remove(before)
			add(after)
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok { // the final state was missed
				obj = tombstone.Obj
			}
			if pod, ok := obj.(*corev1.Pod); ok {
				remove(pod)
			}
		},
	}
}

func (g *Gangs) groupHandler(logger klog.Logger) cache.ResourceEventHandler {
	set := func(obj any) { g.apply(logger, g.registry.SetGroup(obj.(*v2alpha2.PodGroup), g.clock.Now())) }
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, obj any) { set(obj) },
		DeleteFunc: func(obj any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				namespace, name, _ := cache.SplitMetaNamespaceKey(key)
				g.apply(logger, g.registry.RemoveGroup(gangs.Key{Namespace: namespace, Name: name}, g.clock.Now()))
			}
		},
	}
}

// nodeHandler records that room may have grown, and that what is reserved on the node may not be of use any more.
func (g *Gangs) nodeHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { g.registry.RecordRoomGrowth() },
		UpdateFunc: func(oldObj, newObj any) {
			before, after := oldObj.(*corev1.Node), newObj.(*corev1.Node)
			if before.Spec.Unschedulable != after.Spec.Unschedulable ||
				!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
				!equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) ||
				!equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable) ||
				!slices.Equal(before.Status.DeclaredFeatures, after.Status.DeclaredFeatures) {
				g.registry.RecordRoomGrowth()
				g.registry.RecordNodeChanged(after.Name, g.clock.Now())
			}
		},
		DeleteFunc: func(obj any) {
			g.registry.RecordRoomGrowth()
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				g.registry.RemoveNode(name, g.clock.Now())
				g.refusals.Forget(name)
			}
		},
	}
}

// classHandler records that priorities of gangs may have changed. The value of a PriorityClass is immutable.
func (g *Gangs) classHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { g.registry.RecordPrioritiesChanged() },
		DeleteFunc: func(any) { g.registry.RecordPrioritiesChanged() },
	}
}

// topologyHandler lets gangs be tried again whose levels are known by now. The levels of a Topology are immutable.
func (g *Gangs) topologyHandler() cache.ResourceEventHandler {
	changed := func(obj any) {
		if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			g.registry.RecordTopologyChanged(name, g.clock.Now())
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: changed, DeleteFunc: changed, UpdateFunc: func(before, after any) {
		if before.(*topologyv1alpha1.Topology).UID != after.(*topologyv1alpha1.Topology).UID {
			changed(after)
		}
	}}
}
