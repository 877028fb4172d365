// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	schedulerprofile "k8s.io/kubernetes/pkg/scheduler/profile"
)

// OfflineKinds are examples of the kinds of objects that the stock scheduler reads.
var OfflineKinds = []runtime.Object{
	&corev1.Node{}, &corev1.Pod{}, &corev1.Namespace{}, &corev1.Service{}, &corev1.ReplicationController{},
	&corev1.PersistentVolume{}, &corev1.PersistentVolumeClaim{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{},
	&policyv1.PodDisruptionBudget{}, &schedulingv1.PriorityClass{}, &storagev1.StorageClass{}, &storagev1.CSINode{},
	&storagev1.CSIDriver{}, &storagev1.CSIStorageCapacity{}, &storagev1.VolumeAttachment{},
	&resourcev1.ResourceClaim{}, &resourcev1.ResourceSlice{}, &resourcev1.DeviceClass{}, &resourcev1.DeviceTaintRule{},
}

// PluginFactory makes a plugin of a profile.
type PluginFactory = frameworkruntime.PluginFactory

// Configuration is the configuration of kube-scheduler.
type Configuration = config.KubeSchedulerConfiguration

// Offline is the stock scheduler with objects in memory in place of an API server: its plugins, its cache and its
// snapshot, without its queue and its loop. Nodes, pods and ResourceClaims can be added and changed. It sends no
// request.
type Offline struct {
	sched  *scheduler.Scheduler
	claims *offlineClaims
}

// NewOffline returns a scheduler that has read the objects; those of kinds that it does not read are ignored. Plugins
// are made by the factories, beside those of kube-scheduler. HTTP extenders of the configuration are left out. It uses
// resources until ctx ends.
func NewOffline(ctx context.Context, cfg *Configuration, factories map[string]PluginFactory, objects []runtime.Object) (*Offline, error) {
	byKind := map[reflect.Type][]runtime.Object{}
	for _, o := range objects {
		byKind[reflect.TypeOf(o)] = append(byKind[reflect.TypeOf(o)], o)
	}
	claims, claimObjects := newOfflineClaims(byKind[reflect.TypeFor[*resourcev1.ResourceClaim]()])
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://offline.invalid", Transport: claims, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}})
	if err != nil {
		return nil, fmt.Errorf("making a scheduler without a cluster: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	var all []cache.SharedIndexInformer
	for _, kind := range OfflineKinds {
		var items []runtime.Object
		var changes watch.Interface = watch.NewFake() // none
		switch kind.(type) {
		case *corev1.Node, *corev1.Pod: // they go into the scheduler's cache directly, without its queue
		case *resourcev1.ResourceClaim:
			items, changes = claimObjects, claims.watcher
		default:
			items = byKind[reflect.TypeOf(kind)]
		}
		all = append(all, factory.InformerFor(kind, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
			return cache.NewSharedIndexInformer(knownList{items, changes}, kind, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		}))
	}
	recorders := schedulerprofile.NewRecorderFactory(events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()}))
	sched, err := scheduler.New(ctx, client, factory, nil, recorders, scheduler.WithComponentConfigVersion(cfg.APIVersion),
		scheduler.WithProfiles(cfg.Profiles...), scheduler.WithFrameworkOutOfTreeRegistry(factories), scheduler.WithParallelism(int32(cfg.Parallelism)))
	if err != nil {
		return nil, fmt.Errorf("making a scheduler without a cluster: %w", err)
	}
	for _, informer := range all {
		go informer.Run(ctx.Done())
	}
	for _, informer := range all { // WaitForCacheSync looks every 100 ms
		select {
		case <-informer.HasSyncedChecker().Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		return nil, err
	}
	o, logger := &Offline{sched, claims}, klog.FromContext(ctx)
	nodes := factory.Core().V1().Nodes().Informer().GetIndexer()
	for _, node := range byKind[reflect.TypeFor[*corev1.Node]()] {
		if err := nodes.Add(node); err != nil {
			return nil, err
		}
		sched.Cache.AddNode(logger, node.(*corev1.Node))
	}
	for _, pod := range byKind[reflect.TypeFor[*corev1.Pod]()] {
		if pod := pod.(*corev1.Pod); takesRoom(pod) {
			if err := o.AddPod(pod); err != nil {
				return nil, err
			}
		}
	}
	return o, nil
}

// takesRoom reports whether the pod uses what its node has.
func takesRoom(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// Nodes returns the nodes as a scheduling cycle would see them now. They are valid until the next call.
func (o *Offline) Nodes() ([]fwk.NodeInfo, error) {
	for _, profile := range o.sched.Profiles { // all of them share one snapshot
		snapshot, ok := profile.SnapshotSharedLister().(*schedulercache.Snapshot)
		if !ok {
			return nil, fmt.Errorf("the snapshot of kube-scheduler is a %T", profile.SnapshotSharedLister())
		}
		if err := o.sched.Cache.UpdateSnapshot(klog.Background(), snapshot); err != nil {
			return nil, err
		}
		nodes, err := snapshot.NodeInfos().List()
		return slices.Clone(nodes), err
	}
	return nil, nil
}

// SetNode adds a node, or replaces that of its name.
func (o *Offline) SetNode(node *corev1.Node) {
	if old, err := o.sched.Cache.GetNode(node.Name); err == nil && old.Node() != nil {
		o.sched.Cache.UpdateNode(klog.Background(), old.Node(), node)
		return
	}
	o.sched.Cache.AddNode(klog.Background(), node)
}

// RemoveNode removes a node.
func (o *Offline) RemoveNode(node *corev1.Node) error {
	return o.sched.Cache.RemoveNode(klog.Background(), node)
}

// AddPod adds a pod to its node.
func (o *Offline) AddPod(pod *corev1.Pod) error { return o.sched.Cache.AddPod(klog.Background(), pod) }

// RemovePod takes a pod off its node.
func (o *Offline) RemovePod(pod *corev1.Pod) error {
	return o.sched.Cache.RemovePod(klog.Background(), pod)
}

// knownList is what an informer reads: objects, and later changes of them.
type knownList struct {
	items   []runtime.Object
	changes watch.Interface
}

// List implements cache.Lister.
func (l knownList) List(metav1.ListOptions) (runtime.Object, error) {
	list := &metav1.List{Items: make([]runtime.RawExtension, len(l.items))}
	for i, item := range l.items {
		list.Items[i].Object = item
	}
	return list, nil
}

// Watch implements cache.Watcher.
func (l knownList) Watch(metav1.ListOptions) (watch.Interface, error) { return l.changes, nil }

// IsWatchListSemanticsUnSupported is what the informer asks before it begins.
func (knownList) IsWatchListSemanticsUnSupported() bool { return true }
