// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/test/podlife"
)

// change stores an object in place of another, nil for none, and notifies the watchers. a.mu is held.
func (a *API) change(t *table, old, now client.Object) {
	a.version++
	c := Change{GVK: t.gvk, Old: old, New: now}
	if now != nil {
		now.SetResourceVersion(strconv.FormatInt(a.version, 10))
		c.Key = client.ObjectKeyFromObject(now)
		t.objects[c.Key] = now
	} else {
		c.Key = client.ObjectKeyFromObject(old)
		delete(t.objects, c.Key)
	}
	t.ordered = with(t.ordered, c.Key, now)
	for _, f := range a.watchers {
		if f != nil {
			f(c)
		}
	}
}

// refused returns the error of Refuse.
func (a *API) refused(verb Verb, o client.Object) error {
	if a.Refuse == nil {
		return nil
	}
	return a.Refuse(verb, o)
}

// stored returns an object as it is stored.
func (a *API) stored(t *table, key types.NamespacedName) (client.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if there := t.objects[key]; there != nil {
		return there, nil
	}
	return nil, apierrors.NewNotFound(t.resource, key.Name)
}

// create stores a new object, except with dry-run, and returns it.
func (a *API) create(t *table, o client.Object, dryRun bool) (client.Object, error) {
	if o.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if err := a.refused(Create, o); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := client.ObjectKeyFromObject(o)
	if t.objects[key] != nil {
		return nil, apierrors.NewAlreadyExists(t.resource, key.Name)
	}
	if dryRun {
		return o, nil
	}
	made := o.DeepCopyObject().(client.Object)
	made.GetObjectKind().SetGroupVersionKind(t.gvk)
	count := t.gvk.Kind + " " + key.String()
	a.made[count]++
	made.SetUID(types.UID(fmt.Sprintf("%s-%s-%d", strings.ToLower(t.gvk.Kind), strings.ReplaceAll(key.String(), "/", "-"), a.made[count])))
	made.SetCreationTimestamp(a.now())
	made.SetDeletionTimestamp(nil)
	made.SetDeletionGracePeriodSeconds(nil)
	made.SetSelfLink("")
	made.SetGeneration(0)
	if t.status && t.gvk.Kind != "Node" { // kubelets register nodes with their status
		clearStatus(made)
	}
	if t.custom {
		made.SetGeneration(1)
	}
	if pod, ok := made.(*corev1.Pod); ok {
		pod.Generation = 1
		pod.Status.Phase = corev1.PodPending
		tolerateUnreachable(pod)
		if pod.Spec.TerminationGracePeriodSeconds == nil {
			seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
			pod.Spec.TerminationGracePeriodSeconds = &seconds
		}
		if pod.Spec.RestartPolicy == "" {
			pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
		}
	}
	a.change(t, nil, made)
	return made, nil
}

// now returns the time in the resolution of objects: whole seconds.
func (a *API) now() metav1.Time { return metav1.NewTime(a.clock.Now()).Rfc3339Copy() }

// update applies edit to a copy of an object and stores it: only its status, or all but its status. It returns the
// stored object.
func (a *API) update(t *table, key types.NamespacedName, verb Verb, edit func(there client.Object) (client.Object, error)) (client.Object, error) {
	there, err := a.stored(t, key)
	if err != nil {
		return nil, err
	}
	next, err := edit(there.DeepCopyObject().(client.Object))
	if err != nil {
		return nil, err
	}
	if err := a.refused(verb, next); err != nil {
		return nil, err
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	if t.objects[key] != there {
		return nil, conflict(t, key.Name, "the object has been modified; please apply your changes to the latest version and try again")
	}
	switch {
	case next.GetUID() != "" && next.GetUID() != there.GetUID():
		return nil, precondition(t, key.Name, "UID", string(next.GetUID()), string(there.GetUID()))
	case next.GetResourceVersion() == "" && t.custom:
		return nil, apierrors.NewBadRequest("metadata.resourceVersion: must be specified for an update")
	case next.GetResourceVersion() != "" && next.GetResourceVersion() != there.GetResourceVersion():
		return nil, conflict(t, key.Name, "the object has been modified; please apply your changes to the latest version and try again")
	}
	if verb == UpdateStatus {
		whole := there.DeepCopyObject().(client.Object)
		copyStatus(whole, next)
		next = whole
	} else if t.status {
		copyStatus(next, there)
	}
	keepSystemMeta(next, there)
	next.GetObjectKind().SetGroupVersionKind(t.gvk)
	if there.GetDeletionTimestamp() != nil {
		for _, f := range next.GetFinalizers() {
			if !slices.Contains(there.GetFinalizers(), f) {
				return nil, apierrors.NewForbidden(t.resource, key.Name, fmt.Errorf("no new finalizers can be added if the object is being deleted, found new finalizer %s", f))
			}
		}
	}
	if equality.Semantic.DeepEqual(there, next) {
		return there, nil
	}
	if there.GetGeneration() > 0 && specDiffers(there, next) {
		next.SetGeneration(there.GetGeneration() + 1)
	}
	if isOver(next) {
		a.change(t, there, nil)
		return next, nil
	}
	a.change(t, there, next)
	return next, nil
}

// isOver reports whether no finalizer and no grace period keeps an object that is being deleted.
func isOver(o client.Object) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

// keepSystemMeta copies the metadata that clients cannot write.
func keepSystemMeta(next, there client.Object) {
	next.SetUID(there.GetUID())
	next.SetResourceVersion(there.GetResourceVersion())
	next.SetCreationTimestamp(there.GetCreationTimestamp())
	next.SetDeletionTimestamp(there.GetDeletionTimestamp())
	next.SetDeletionGracePeriodSeconds(there.GetDeletionGracePeriodSeconds())
	next.SetGeneration(there.GetGeneration())
}

// specDiffers reports whether two objects differ in more than metadata and status.
func specDiffers(x, y client.Object) bool {
	x, y = x.DeepCopyObject().(client.Object), y.DeepCopyObject().(client.Object)
	for _, o := range []client.Object{x, y} {
		*objectMeta(o) = metav1.ObjectMeta{}
		clearStatus(o)
	}
	return !equality.Semantic.DeepEqual(x, y)
}

func status(o client.Object) reflect.Value { return reflect.ValueOf(o).Elem().FieldByName("Status") }

func clearStatus(o client.Object) {
	if s := status(o); s.IsValid() {
		s.SetZero()
	}
}

// copyStatus copies the status of another object of the same type, which must not be modified afterwards.
func copyStatus(to, from client.Object) {
	status(to).Set(status(from.DeepCopyObject().(client.Object)))
}

func conflict(t *table, name, text string) error {
	return apierrors.NewConflict(t.resource, name, errors.New(text))
}

func precondition(t *table, name, field, asked, is string) error {
	return conflict(t, name, fmt.Sprintf("Precondition failed: %s in precondition: %s, %s in object meta: %s", field, asked, field, is))
}

// patch stores an object with a patch applied to it.
func (a *API) patch(t *table, key types.NamespacedName, verb Verb, kind types.PatchType, data []byte) (client.Object, error) {
	return a.update(t, key, verb, func(there client.Object) (client.Object, error) {
		before, err := json.Marshal(there)
		if err != nil {
			return nil, err
		}
		var after []byte
		switch kind {
		case types.MergePatchType:
			after, err = jsonpatch.MergePatch(before, data)
		case types.StrategicMergePatchType:
			if t.custom {
				return nil, apierrors.NewGenericServerResponse(415, "patch", t.resource, key.Name, "the body of the request was in an unknown format", 0, false)
			}
			after, err = strategicpatch.StrategicMergePatch(before, data, there)
		default:
			err = fmt.Errorf("patches of type %s are not made here", kind)
		}
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		next := reflect.New(reflect.TypeOf(there).Elem()).Interface().(client.Object)
		if err := json.Unmarshal(after, next); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return next, nil
	})
}

// remove deletes an object, or marks it as being deleted.
func (a *API) remove(t *table, key types.NamespacedName, o *client.DeleteOptions) error {
	there, err := a.stored(t, key)
	if err != nil {
		return err
	}
	if err := a.refused(Delete, there); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.objects[key] != there {
		return conflict(t, key.Name, "the object has been modified")
	}
	if p := o.Preconditions; p != nil {
		switch {
		case p.UID != nil && *p.UID != there.GetUID():
			return precondition(t, key.Name, "UID", string(*p.UID), string(there.GetUID()))
		case p.ResourceVersion != nil && *p.ResourceVersion != there.GetResourceVersion():
			return precondition(t, key.Name, "ResourceVersion", *p.ResourceVersion, there.GetResourceVersion())
		}
	}

	next := there.DeepCopyObject().(client.Object)
	if o.PropagationPolicy != nil {
		propagate(next, *o.PropagationPolicy)
	}
	grace := gracePeriod(there, o.GracePeriodSeconds)
	requested := a.now().Time
	switch was := there.GetDeletionGracePeriodSeconds(); {
	case there.GetDeletionTimestamp() == nil:
		if next.GetGeneration() > 0 {
			next.SetGeneration(next.GetGeneration() + 1)
		}
	case was != nil && grace < *was: // the grace period can only be shortened, and is counted from the first request
		requested = there.GetDeletionTimestamp().Add(-seconds(*was))
	default:
		requested = time.Time{}
	}
	if !requested.IsZero() {
		end := metav1.NewTime(requested.Add(seconds(grace)))
		next.SetDeletionTimestamp(&end)
		next.SetDeletionGracePeriodSeconds(&grace)
	}
	switch {
	case isOver(next):
		a.change(t, there, nil)
	case !equality.Semantic.DeepEqual(there, next):
		a.change(t, there, next)
	}
	return nil
}

// tolerateUnreachable adds the toleration that the admission plugin DefaultTolerationSeconds adds, unless the pod has
// one.
func tolerateUnreachable(pod *corev1.Pod) {
	for _, t := range pod.Spec.Tolerations {
		if t.Key == corev1.TaintNodeUnreachable {
			return
		}
	}
	seconds := int64(lostAfter / time.Second)
	pod.Spec.Tolerations = append(slices.Clone(pod.Spec.Tolerations), corev1.Toleration{
		Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds})
}

// gracePeriod returns the grace period of a deletion in seconds: 0 except for pods that a kubelet may have started.
func gracePeriod(o client.Object, asked *int64) int64 {
	pod, ok := o.(*corev1.Pod)
	switch {
	case !ok || pod.Spec.NodeName == "" || podlife.Over(pod):
		return 0
	case asked != nil:
		return *asked
	default:
		return *pod.Spec.TerminationGracePeriodSeconds
	}
}

// propagate adds the finalizer that shows the propagation policy to the garbage collector.
func propagate(o client.Object, policy metav1.DeletionPropagation) {
	kept := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	switch policy {
	case metav1.DeletePropagationOrphan:
		kept = append(kept, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		kept = append(kept, metav1.FinalizerDeleteDependents)
	}
	if len(kept) == 0 {
		kept = nil
	}
	o.SetFinalizers(kept)
}

// bind sets the node of a pod, like the binding subresource.
func (a *API) bind(key types.NamespacedName, uid types.UID, node string, annotations map[string]string) error {
	t := a.tables[corev1.SchemeGroupVersion.WithKind("Pod")]
	a.mu.Lock()
	defer a.mu.Unlock()
	there, _ := t.objects[key].(*corev1.Pod)
	switch {
	case there == nil:
		return apierrors.NewNotFound(t.resource, key.Name)
	case there.UID != uid:
		return conflict(t, key.Name, "Precondition failed: UID")
	case there.DeletionTimestamp != nil:
		return conflict(t, key.Name, "pod "+key.Name+" is being deleted, cannot be assigned to a host")
	case there.Spec.NodeName != "":
		return conflict(t, key.Name, "pod "+key.Name+" is already assigned to node "+there.Spec.NodeName)
	}
	next := there.DeepCopy()
	next.Spec.NodeName = node
	for k, v := range annotations {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, k, v)
	}
	podlife.SetCondition(next, corev1.PodScheduled, true, a.now())
	a.change(t, there, next)
	return nil
}
