package children

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// InTheWay is the error of Create when the name is taken by an object that is not ours.
type InTheWay struct {
	Kind, Name string
	// Going: the object is being deleted, or its owner is gone. Ours can be made when it has gone.
	Going bool
	// Owner is "Kind name" of who controls it, "" if nobody does.
	Owner string
}

func (e *InTheWay) Error() string {
	switch {
	case e.Going:
		return fmt.Sprintf("%s %s is being deleted; its successor is made when it is gone", e.Kind, e.Name)
	case e.Owner != "":
		return fmt.Sprintf("%s %s belongs to %s and is left alone; delete it, or give one of the two another name", e.Kind, e.Name, e.Owner)
	default:
		return fmt.Sprintf("%s %s exists and belongs to nobody; it is left alone; delete it to have ours made", e.Kind, e.Name)
	}
}

// Waits tells whether something among the errors is about to go.
func Waits(err error) bool {
	for _, e := range flatten(err) {
		inTheWay := (*InTheWay)(nil)
		if errors.As(e, &inTheWay) && inTheWay.Going {
			return true
		}
	}
	return false
}

// Maker makes children.
type Maker struct {
	Client client.Client
	// Live reads past the cache; asked only when a name is taken.
	Live client.Reader
}

// Create creates the object, whose controlling owner is set. An object that exists already and has the same owner is no
// error: the cache was behind, and its event is on the way; or somebody took the label away by which the cache finds it,
// which is put back. *InTheWay is returned for one that has another owner, or none.
func (m Maker) Create(ctx context.Context, object client.Object) error {
	err := m.Client.Create(ctx, object)
	if err == nil {
		m.logChange(ctx, "Made an object", object)
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	ours := metav1.GetControllerOfNoCopy(object)
	kind, gvkErr := apiutil.GVKForObject(object, m.Client.Scheme())
	if gvkErr != nil {
		return gvkErr
	}
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(kind)
	key := client.ObjectKeyFromObject(object)
	if err := m.Live.Get(ctx, key, there); apierrors.IsNotFound(err) {
		return &InTheWay{Kind: kind.Kind, Name: key.Name, Going: true}
	} else if err != nil {
		return fmt.Errorf("reading %s %s, whose name is needed: %w", kind.Kind, key.Name, err)
	}

	theirs := metav1.GetControllerOfNoCopy(there)
	inTheWay := &InTheWay{Kind: kind.Kind, Name: key.Name, Going: there.DeletionTimestamp != nil}
	switch {
	case inTheWay.Going:
		return inTheWay
	case theirs == nil:
		return inTheWay
	case ours != nil && theirs.UID == ours.UID:
		if there.Labels[v1alpha1.LabelManagedBy] == v1alpha1.LabelManagedByValue {
			return nil
		}
		lost := map[string]string{}
		for k, v := range object.GetLabels() {
			if _, has := there.Labels[k]; !has || k == v1alpha1.LabelManagedBy {
				lost[k] = v
			}
		}
		return m.Relabel(ctx, there, lost)
	}
	inTheWay.Owner = theirs.Kind + " " + theirs.Name
	if ours != nil && theirs.Kind == ours.Kind && theirs.Name == ours.Name {
		inTheWay.Going = true // a namesake of our owner, and there is but one: that one is gone
		return inTheWay
	}
	gone, err := m.ownerGone(ctx, key.Namespace, theirs)
	if err != nil {
		return err
	}
	inTheWay.Going = gone
	return inTheWay
}

// Relabel sets labels of an object that somebody took away or changed.
func (m Maker) Relabel(ctx context.Context, object client.Object, labels map[string]string) error {
	kind, err := apiutil.GVKForObject(object, m.Client.Scheme())
	if err != nil {
		return err
	}
	mended := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}}
	mended.SetGroupVersionKind(kind)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.GetUID(), "labels": labels}}) // the UID: no successor of that name
	if err != nil {
		return err
	}
	if err := m.Client.Patch(ctx, mended, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("giving %s %s its labels back: %w", kind.Kind, object.GetName(), err)
	}
	klog.FromContext(ctx).V(2).Info("Gave an object the labels back that it had lost", "kind", kind.Kind, "object", klog.KObj(object))
	return nil
}

// logChange logs what was done to an object: of pods in detail only, since there are so many.
func (m Maker) logChange(ctx context.Context, what string, object client.Object) {
	level := 2
	if _, isPod := object.(*corev1.Pod); isPod {
		level = 5
	}
	logger := klog.FromContext(ctx).V(level)
	if !logger.Enabled() {
		return
	}
	kind, err := apiutil.GVKForObject(object, m.Client.Scheme())
	if err != nil {
		return // the API server took it: its kind is known
	}
	logger.Info(what, "kind", kind.Kind, "object", klog.KObj(object))
}

// ownerGone tells whether the owner does not exist any more. Owners of kinds that are not ours are taken for living.
func (m Maker) ownerGone(ctx context.Context, namespace string, ref *metav1.OwnerReference) (bool, error) {
	group := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupVersion() // empty if it cannot be read
	if !m.Client.Scheme().Recognizes(group.WithKind(ref.Kind)) || group.Group != ownGroup {
		return false, nil
	}
	owner := &metav1.PartialObjectMetadata{}
	owner.SetGroupVersionKind(group.WithKind(ref.Kind))
	err := m.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, owner)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s %s, which owns an object whose name is needed: %w", ref.Kind, ref.Name, err)
	}
	return owner.UID != ref.UID, nil
}

// ownGroup is the API group of owners that we may read.
const ownGroup = "grove.io"
