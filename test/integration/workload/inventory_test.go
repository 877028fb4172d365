// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// inventory has all objects of one PodCliqueSet, by kind and name: "PodClique llm-0-frontend". Pods are listed by their
// host names.
type inventory map[string]thing

// thing is a textual form of an object, complete enough to compare.
type thing struct {
	Owner  string            `json:"owner,omitempty"` // its controller, kind and name
	Labels map[string]string `json:"labels,omitempty"`
	Says   []string          `json:"says"` // spec and status, a fact a line
}

// present stands for any value that is not empty.
const present = "(present)"

// inventories returns the objects of the namespace, by the PodCliqueSet in their label.
func (w *world) inventories() (map[string]inventory, error) {
	all := map[string]inventory{}
	uids := map[types.UID]string{}
	add := func(kind, name string, o client.Object, says []string) {
		uids[o.GetUID()] = kind + " " + o.GetName()
		labels := maps.Clone(o.GetLabels())
		delete(labels, corev1.LabelTopologyZone) // the API server copies these two from a pod's node
		delete(labels, corev1.LabelTopologyRegion)
		set := cmp.Or(labels[v1alpha1.LabelPartOf], "nobody")
		if kind == v1alpha1.KindPodCliqueSet {
			set, labels = o.GetName(), nil // its own are the user's
		}
		if labels[v1alpha1.LabelPodTemplateHash] != "" {
			labels[v1alpha1.LabelPodTemplateHash] = present
		}
		if all[set] == nil {
			all[set] = inventory{}
		}
		key := kind + " " + name
		if _, twice := all[set][key]; twice {
			says = append(says, "there are two of it")
		}
		if o.GetDeletionTimestamp() != nil {
			says = append(says, "is being deleted")
		}
		all[set][key] = thing{Owner: owner(o, uids), Labels: labels, Says: says}
	}

	// From the top down, so that owners are known.
	setList, groupList, cliqueList := &v1alpha1.PodCliqueSetList{}, &v1alpha1.PodCliqueScalingGroupList{}, &v1alpha1.PodCliqueList{}
	podGroupList, serviceList, hpaList := &v2alpha2.PodGroupList{}, &corev1.ServiceList{}, &autoscalingv2.HorizontalPodAutoscalerList{}
	roleList, bindingList, podList := &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &corev1.PodList{}
	for _, list := range []client.ObjectList{setList, groupList, cliqueList, podGroupList, serviceList, hpaList, roleList, bindingList, podList} {
		if err := w.client.List(w.ctx, list, client.InNamespace(w.namespace)); err != nil {
			return nil, err
		}
	}
	for i := range setList.Items {
		o := &setList.Items[i]
		add(v1alpha1.KindPodCliqueSet, o.Name, o, aboutSet(o))
	}
	for i := range groupList.Items {
		o := &groupList.Items[i]
		add(v1alpha1.KindPodCliqueScalingGroup, o.Name, o, aboutGroup(o))
	}
	for i := range cliqueList.Items {
		o := &cliqueList.Items[i]
		add(v1alpha1.KindPodClique, o.Name, o, aboutClique(o))
	}
	for i := range podGroupList.Items {
		o := &podGroupList.Items[i]
		add("PodGroup", o.Name, o, aboutPodGroup(o))
	}
	for i := range serviceList.Items {
		o := &serviceList.Items[i]
		add("Service", o.Name, o, []string{
			"address " + o.Spec.ClusterIP, "selects " + inWords(o.Spec.Selector), fmt.Sprintf("publishes not ready: %t", o.Spec.PublishNotReadyAddresses),
		})
	}
	for i := range hpaList.Items {
		o := &hpaList.Items[i]
		add("HorizontalPodAutoscaler", o.Name, o, aboutHPA(o))
	}
	for i := range roleList.Items {
		add("Role", roleList.Items[i].Name, &roleList.Items[i], nil)
	}
	for i := range bindingList.Items {
		add("RoleBinding", bindingList.Items[i].Name, &bindingList.Items[i], nil)
	}
	for i := range podList.Items {
		o := &podList.Items[i]
		add("Pod", o.Spec.Hostname, o, aboutPod(o))
	}
	return all, nil
}

// untilInventories waits until done accepts the inventories, and returns the last ones. It checks after every change;
// wait for the pods first, so that there are few changes.
func (w *world) untilInventories(done func(map[string]inventory) bool) map[string]inventory {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	changed := make(chan struct{}, 1)
	for _, kind := range []schema.GroupVersionResource{sets, groups, cliques, podGroups, services, hpas, podsKind} {
		go func() {
			_ = controlplane.Until(ctx, w.dynamic.Resource(kind).Namespace(w.namespace), metav1.ListOptions{}, func([]*unstructured.Unstructured) bool {
				select {
				case changed <- struct{}{}:
				default:
				}
				return false
			})
		}()
	}
	for {
		got, err := w.inventories()
		w.must(err, "listing everything")
		if done(got) {
			return got
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return got
		}
	}
}

// owner names the controller of an object; uids has the objects that there are.
func owner(o client.Object, uids map[types.UID]string) string {
	c := metav1.GetControllerOf(o)
	switch {
	case c == nil:
		return ""
	case uids[c.UID] != c.Kind+" "+c.Name:
		return fmt.Sprintf("%s %s, which is gone", c.Kind, c.Name)
	}
	return uids[c.UID]
}

func aboutSet(o *v1alpha1.PodCliqueSet) []string {
	return append([]string{
		fmt.Sprintf("replicas %d", o.Spec.Replicas),
		fmt.Sprintf("status: replicas %d, scheduled %d, available %d, updated %d, %s", o.Status.Replicas, o.Status.ScheduledReplicas,
			o.Status.AvailableReplicas, o.Status.UpdatedReplicas, o.Status.Phase),
	}, conditions(o.Generation, o.Status.ObservedGeneration, o.Status.Conditions, o.Status.LastErrors)...)
}

func aboutGroup(o *v1alpha1.PodCliqueScalingGroup) []string {
	return append([]string{
		fmt.Sprintf("replicas %d, minAvailable %s, cliques %s", o.Spec.Replicas, orUnset(o.Spec.MinAvailable), strings.Join(o.Spec.CliqueNames, " ")),
		fmt.Sprintf("status: replicas %d, scheduled %d, available %d, updated %d", o.Status.Replicas, o.Status.ScheduledReplicas,
			o.Status.AvailableReplicas, o.Status.UpdatedReplicas),
	}, conditions(o.Generation, o.Status.ObservedGeneration, o.Status.Conditions, o.Status.LastErrors)...)
}

func aboutClique(o *v1alpha1.PodClique) []string {
	return append([]string{
		fmt.Sprintf("role %s, replicas %d, minAvailable %s", o.Spec.RoleName, o.Spec.Replicas, orUnset(o.Spec.MinAvailable)),
		fmt.Sprintf("status: replicas %d, ready %d, scheduled %d, gated %d, updated %d, minAvailable %s", o.Status.Replicas, o.Status.ReadyReplicas,
			o.Status.ScheduledReplicas, o.Status.ScheduleGatedReplicas, o.Status.UpdatedReplicas, orUnset(o.Status.MinAvailable)),
	}, conditions(o.Generation, o.Status.ObservedGeneration, o.Status.Conditions, o.Status.LastErrors)...)
}

func aboutPodGroup(o *v2alpha2.PodGroup) []string {
	says := []string{"root: needs " + minimums(o.Spec.MinMember, o.Spec.MinSubGroup)}
	for _, g := range o.Spec.SubGroups {
		parent := "root"
		if g.Parent != nil {
			parent = *g.Parent
		}
		says = append(says, fmt.Sprintf("%s below %s: needs %s", g.Name, parent, minimums(g.MinMember, g.MinSubGroup)))
	}
	if o.Spec.PriorityClassName != "" {
		says = append(says, "priority "+o.Spec.PriorityClassName)
	}
	says = append(says, "bound "+o.Status.Scheduled)
	return append(says, conditions(o.Generation, o.Status.ObservedGeneration, o.Status.Conditions, nil)...)
}

func minimums(minMember, minSubGroup *int32) string {
	switch {
	case minMember != nil && minSubGroup != nil:
		return "both"
	case minMember != nil:
		return fmt.Sprintf("%d pods", *minMember)
	case minSubGroup != nil:
		return fmt.Sprintf("%d children", *minSubGroup)
	}
	return "all"
}

// conditions returns the conditions by type, and the errors of the status as a whole.
func conditions(generation, observed int64, conditions []metav1.Condition, errors []v1alpha1.LastError) []string {
	var says []string
	for _, c := range conditions {
		says = append(says, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	slices.Sort(says)
	if observed != generation {
		says = append(says, fmt.Sprintf("status is of generation %d of %d", observed, generation))
	}
	for _, e := range errors {
		says = append(says, "error: "+e.Description)
	}
	return says
}

func aboutHPA(o *autoscalingv2.HorizontalPodAutoscaler) []string {
	says := []string{
		fmt.Sprintf("scales %s %s", o.Spec.ScaleTargetRef.Kind, o.Spec.ScaleTargetRef.Name),
		fmt.Sprintf("from %s to %d", orUnset(o.Spec.MinReplicas), o.Spec.MaxReplicas),
	}
	for _, m := range o.Spec.Metrics {
		if m.Resource != nil {
			says = append(says, fmt.Sprintf("by %s at %s%%", m.Resource.Name, orUnset(m.Resource.Target.AverageUtilization)))
		} else {
			says = append(says, fmt.Sprintf("by %s", m.Type))
		}
	}
	return says
}

// podName is the host name and the unique part of the name of a pod.
var podName = regexp.MustCompile(`^(.+)-[a-z2-9]{5}$`)

func aboutPod(o *corev1.Pod) []string {
	says := []string{
		"subdomain " + o.Spec.Subdomain, "scheduler " + o.Spec.SchedulerName,
		"of PodGroup " + o.Annotations[v2alpha2.PodGroupAnnotation],
		fmt.Sprintf("bound %t, ready %t", o.Spec.NodeName != "", controlplane.PodReady(o)),
	}
	if m := podName.FindStringSubmatch(o.Name); m == nil || m[1] != o.Spec.Hostname {
		says = append(says, "name "+o.Name)
	}
	for _, k := range slices.Sorted(maps.Keys(o.Annotations)) {
		// The UID of the set is another one in each run; TestJobIsCreatedAgain rests on it.
		if k != v2alpha2.PodGroupAnnotation && k != v2alpha2.BoundForAnnotation && k != v1alpha1.AnnotationPodCliqueSetUID {
			says = append(says, "annotation "+k+"="+o.Annotations[k])
		}
	}
	if o.Spec.PriorityClassName != "" {
		says = append(says, "priority "+o.Spec.PriorityClassName)
	}
	for _, containers := range [][]corev1.Container{o.Spec.InitContainers, o.Spec.Containers} {
		for _, c := range containers {
			says = append(says, "container "+c.Name)
			for _, arg := range c.Args {
				if waits, ok := strings.CutPrefix(arg, "--requirements="); ok {
					says = append(says, "waits for "+waits)
				}
			}
			for _, e := range c.Env {
				if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
					says = append(says, fmt.Sprintf("%s: %s from %s", c.Name, e.Name, e.ValueFrom.FieldRef.FieldPath))
				} else {
					says = append(says, fmt.Sprintf("%s: %s=%s", c.Name, e.Name, e.Value))
				}
			}
		}
	}
	return says
}

func inWords(m map[string]string) string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		words = append(words, k+"="+m[k])
	}
	return strings.Join(words, ",")
}

func orUnset(n *int32) string {
	if n == nil {
		return "unset"
	}
	return fmt.Sprint(*n)
}
