// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/classes"
	"github.com/muster-project/muster/pkg/grouping"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// Options of a controller.
type Options struct {
	// SchedulerName is set on pods whose template has no schedulerName.
	SchedulerName string
	// WaitImage is the image of the container that waits until other cliques have started.
	WaitImage string
	// StalledUpdateAfter is the time without progress after which an update has stalled. Not positive: never.
	StalledUpdateAfter time.Duration
	// Classes are the PodCliqueSets that are served.
	Classes classes.Options
	// Grouped are the kinds of workloads of other controllers for which PodGroups are made.
	Grouped []grouping.Kind
	// OtherSchedulers are those that Muster is not: of a PodGroup of another scheduler that only their pods name none
	// is made.
	OtherSchedulers []string
	Clock           clock.PassiveClock
	// SchedulerLease is the Lease of the scheduler named SchedulerName. No name: it is not read.
	SchedulerLease types.NamespacedName
	// Witness finds out who does not answer; the controllers of a process share it. nil: each has its own.
	Witness *Witness
	// Pulse finds out whether the process has stood still; nil: it never does.
	Pulse *Pulse
	// StandstillLimit is the time after which a leader that cannot renew its Lease gives up the lead; 0: 10 s. It is
	// that of the Pulse of the process.
	StandstillLimit time.Duration
}

// NewClient returns a Client for a controller with the options. c reads from the cache, live from the API server.
func (o Options) NewClient(c client.Client, live client.Reader) *Client {
	of := NewClient(c, live)
	of.classes = classes.Reader{Options: o.Classes, Leases: c, Namespaces: c}
	of.liveClasses = classes.Reader{Options: o.Classes, Leases: live, Namespaces: live}
	of.pulse = o.Pulse
	if o.Witness != nil {
		of.witness = o.Witness
	}
	return of
}

// OfPods returns the options of the pods that a controller creates.
func (o Options) OfPods() workload.PodOptions {
	return workload.PodOptions{SchedulerName: o.SchedulerName, WaitImage: o.WaitImage}
}

// Client reads, creates, updates and deletes children.
type Client struct {
	client client.Client
	live   client.Reader
	// classes and liveClasses decide which sets are served; the second one reads from the API server.
	classes, liveClasses classes.Reader
	witness              *Witness
	pulse                *Pulse // nil: the process never stands still

	passing FactTimes // transient errors, by the UID of the object, see Problems
	failing FactTimes // kinds of errors, by the name of the object, see Result
	// unfinished are the objects, by name, whose latest pass had no error but left objects to create to the next pass.
	unfinished FactTimes
	// unreadable are the UIDs of the ControllerRevisions that could not be read and were logged; if there are more
	// than maxUnreadable, the most recently seen ones.
	unreadable *lru.Cache
}

// maxUnreadable is the maximum number of unreadable revisions that are remembered, which is more than a cluster has
// unless all are broken.
const maxUnreadable = 1000

// NewClient returns a Client. c reads from the cache, live from the API server. live is used only where the cache may
// be behind and this would cause harm.
func NewClient(c client.Client, live client.Reader) *Client {
	return &Client{client: c, live: live, witness: NewWitness(c, live, Options{}), unreadable: lru.New(maxUnreadable)}
}

// Names of the cache's indexes.
const (
	// byOwner finds objects by the UID of their controlling owner.
	byOwner = "controller.uid"
	// byFormerOwner finds objects by formerOwner of their controlling owner, whatever its UID: the objects that a
	// deleted owner of that name has left.
	byFormerOwner = "controller.name"
	// byPodGroup finds objects by the PodGroup of the replica of the PodCliqueSet in their labels.
	byPodGroup = "podgroup"
)

// Index adds the indexes by which the cache finds objects of these kinds by their controlling owner.
func Index(ctx context.Context, indexer client.FieldIndexer, kinds ...client.Object) error {
	if err := addIndex(ctx, indexer, byOwner, func(o client.Object) string { return string(ownerUID(o)) }, kinds...); err != nil {
		return err
	}
	return addIndex(ctx, indexer, byFormerOwner, func(o client.Object) string {
		if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
			return formerOwner(ref.APIVersion, ref.Kind, ref.Name)
		}
		return ""
	}, kinds...)
}

// IndexAll adds the indexes by which the cache finds objects by their controlling owner, by PodGroup and by node, and
// the Lease of Grove's operator.
func IndexAll(ctx context.Context, indexer client.FieldIndexer) error {
	if err := classes.IndexLeases(ctx, indexer); err != nil {
		return err
	}
	clique, group, pod := &v1alpha1.PodClique{}, &v1alpha1.PodCliqueScalingGroup{}, &corev1.Pod{}
	if err := Index(ctx, indexer, clique, group, &v2alpha2.PodGroup{}, pod, &corev1.Service{}, &autoscalingv2.HorizontalPodAutoscaler{}, &appsv1.ControllerRevision{}); err != nil {
		return err
	}
	if err := addIndex(ctx, indexer, byNode, func(o client.Object) string { return o.(*corev1.Pod).Spec.NodeName }, pod); err != nil {
		return err
	}
	return addIndex(ctx, indexer, byPodGroup, func(o client.Object) string { return podGroupName(o.GetLabels()) }, clique, group, pod)
}

// addIndex adds an index of objects of these kinds by a value, "": the object is left out.
func addIndex(ctx context.Context, indexer client.FieldIndexer, field string, value func(client.Object) string, kinds ...client.Object) error {
	for _, kind := range kinds {
		if err := indexer.IndexField(ctx, kind, field, func(o client.Object) []string {
			if v := value(o); v != "" {
				return []string{v}
			}
			return nil
		}); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", kind, field, err)
		}
	}
	return nil
}

// formerOwner is a key of the index byFormerOwner.
func formerOwner(apiVersion, kind, name string) string { return apiVersion + "/" + kind + "/" + name }

// ManagedSelector selects the objects that were created for PodCliqueSets.
func ManagedSelector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue})
}

// MadeSelector selects them, and the PodGroups that were made for other workloads.
func MadeSelector() labels.Selector {
	either, err := labels.NewRequirement(v1alpha1.LabelManagedBy, selection.In, []string{v1alpha1.LabelManagedByValue, grouping.LabelManagedByValue})
	if err != nil {
		panic(err) // the key and the values are constants
	}
	return labels.NewSelector().Add(*either)
}

// ListOwned fills lists with the cached objects whose controlling owner is owner, including those that are being
// deleted. The objects belong to the cache and must not be modified.
func (c *Client) ListOwned(ctx context.Context, owner client.Object, lists ...client.ObjectList) error {
	for _, list := range lists {
		if err := c.client.List(ctx, list, client.InNamespace(owner.GetNamespace()),
			client.MatchingFields{byOwner: string(owner.GetUID())}, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing %T of %s: %w", list, owner.GetName(), err)
		}
	}
	return nil
}

// InPodGroup returns a function for ChangeHandler.Map that maps a PodGroup to the objects of the kind of list that it
// lists.
func (c *Client) InPodGroup(list client.ObjectList) func(context.Context, client.Object) []types.NamespacedName {
	return func(ctx context.Context, group client.Object) []types.NamespacedName {
		found := list.DeepCopyObject().(client.ObjectList)
		if err := c.client.List(ctx, found, client.InNamespace(group.GetNamespace()),
			client.MatchingFields{byPodGroup: group.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
			return nil // cannot happen: the manager does not start without the index
		}
		return keys(found)
	}
}

// ListSetReplica fills list with the cached objects whose labels name the same replica of a PodCliqueSet as those of
// o. It uses the index byPodGroup. The objects belong to the cache and must not be modified.
func (c *Client) ListSetReplica(ctx context.Context, o client.Object, list client.ObjectList) error {
	name := podGroupName(o.GetLabels())
	if name == "" {
		return nil
	}
	return c.client.List(ctx, list, client.InNamespace(o.GetNamespace()), client.MatchingFields{byPodGroup: name}, client.UnsafeDisableDeepCopy)
}

// OwnedBy returns a function for ChangeHandler.Map that maps an owner to the objects of the kind of list that it owns.
func (c *Client) OwnedBy(list client.ObjectList) func(context.Context, client.Object) []types.NamespacedName {
	return func(ctx context.Context, owner client.Object) []types.NamespacedName {
		found := list.DeepCopyObject().(client.ObjectList)
		if err := c.ListOwned(ctx, owner, found); err != nil {
			return nil // see InPodGroup
		}
		return keys(found)
	}
}

func keys(list client.ObjectList) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, object := range objects(list) {
		keys = append(keys, client.ObjectKeyFromObject(object))
	}
	return keys
}

// objects returns the objects of a list.
func objects(list client.ObjectList) []client.Object {
	var items []client.Object
	_ = meta.EachListItem(list, func(o runtime.Object) error { // the function returns no error, and the list has items
		items = append(items, o.(client.Object))
		return nil
	})
	return items
}

// PodGroup returns the PodGroup that lists a PodClique or a scaling group, nil if it does not exist, is being deleted,
// or belongs to a deleted set of the same name. Read-only.
func (c *Client) PodGroup(ctx context.Context, object client.Object) (*v2alpha2.PodGroup, error) {
	return podGroupOf(ctx, c.client, object)
}

// LivePodGroup is PodGroup read from the API server. The caller reads it before it deletes pods that the minimum in it
// may need.
func (c *Client) LivePodGroup(ctx context.Context, object client.Object) (*v2alpha2.PodGroup, error) {
	return podGroupOf(ctx, c.live, object)
}

func podGroupOf(ctx context.Context, reader client.Reader, object client.Object) (*v2alpha2.PodGroup, error) {
	name := podGroupName(object.GetLabels())
	if name == "" {
		return nil, nil
	}
	group := &v2alpha2.PodGroup{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: name}, group, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading PodGroup %s: %w", name, err)
	}
	if its, set := workload.PodCliqueSetUID(group), workload.PodCliqueSetUID(object); group.DeletionTimestamp != nil || its != "" && set != "" && its != set {
		return nil, nil
	}
	return group, nil
}

// podGroupName returns the name of the PodGroup that an object with these labels belongs to, "" if they do not name
// one.
func podGroupName(labels map[string]string) string {
	set, i := labels[v1alpha1.LabelPartOf], naming.LabelIndex(labels, v1alpha1.LabelPodCliqueSetReplicaIndex)
	if set == "" || i < 0 {
		return ""
	}
	return naming.PodGroupName(set, i)
}
