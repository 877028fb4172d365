// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// setClass annotates all sets with a class, "": none.
func setClass(c *Cluster, class string) {
	for _, s := range All[*v1alpha1.PodCliqueSet](c) {
		Edit(c, s.DeepCopy(), func(s *v1alpha1.PodCliqueSet) {
			s.Annotations = map[string]string{v1alpha1.ControllerClass: class}
		})
	}
}

// labelNamespace labels the namespace of the sets with a class, "": none.
func labelNamespace(c *Cluster, class string) {
	if len(All[*corev1.Namespace](c)) == 0 {
		c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	}
	Edit(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, func(n *corev1.Namespace) {
		n.Labels = map[string]string{v1alpha1.ControllerClass: class}
	})
}

func groveLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "grove-system", Name: "grove-operator-leader-election"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("grove-operator-0")}}
}

// versions returns the resource versions of all objects that belong to sets.
func versions(c *Cluster) []string {
	var all []string
	add := func(kind string, o client.Object) {
		all = append(all, fmt.Sprintf("%s %s %s", kind, o.GetName(), o.GetResourceVersion()))
	}
	for _, o := range All[*v1alpha1.PodCliqueSet](c) {
		add("set", o)
	}
	for _, o := range All[*v1alpha1.PodCliqueScalingGroup](c) {
		add("group", o)
	}
	for _, o := range All[*v1alpha1.PodClique](c) {
		add("clique", o)
	}
	for _, o := range All[*v2alpha2.PodGroup](c) {
		add("PodGroup", o)
	}
	for _, o := range All[*corev1.Service](c) {
		add("service", o)
	}
	for _, o := range All[*corev1.Pod](c) {
		add("pod", o)
	}
	return all
}

// foreign creates a set of another controller with what that one has made of it: a scaling group, a PodClique that the
// template does not have, one whose template hash is another, and a pod of each under another controller's name.
func foreign(c *Cluster, annotations map[string]string) {
	set := watched(time.Minute, 0)
	set.Annotations = annotations
	c.Create(set)
	controller := func(kind string, o client.Object) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Name: o.GetName(), UID: o.GetUID(), Controller: ptr.To(true)}}
	}
	set = theSet(c, "chat")
	labels := func(name string) map[string]string {
		return map[string]string{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue, v1alpha1.LabelPartOf: set.Name, v1alpha1.LabelName: name,
			v1alpha1.LabelPodCliqueSetReplicaIndex: "0"}
	}
	group := scalingGroup()
	group.Labels, group.OwnerReferences = labels("chat-0-model"), controller(v1alpha1.KindPodCliqueSet, set)
	c.Create(group)
	owners := map[string][]metav1.OwnerReference{
		"chat-0-router": controller(v1alpha1.KindPodCliqueSet, set), "chat-0-extra": controller(v1alpha1.KindPodCliqueSet, set),
		"chat-0-model-0-leader": controller(v1alpha1.KindPodCliqueScalingGroup, All[*v1alpha1.PodCliqueScalingGroup](c)[0]),
	}
	for name, owner := range owners {
		clique := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels(name), OwnerReferences: owner},
			Spec: *set.Spec.Template.Cliques[0].Spec.DeepCopy()}
		clique.Spec.Replicas = 3
		c.Create(clique)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name + "-x7f2k", Labels: labels(name),
			OwnerReferences: controller(v1alpha1.KindPodClique, clique)}, Spec: clique.Spec.PodSpec}
		pod.Labels[v1alpha1.LabelPodClique] = name
		pod.Spec.SchedulerName = "another"
		c.Create(pod)
	}
}

// TestASetOfAnotherController: nothing of it is written, created or deleted, and no event tells about it, also when
// pods and PodCliques come and go, and after a restart. Source: docs/decisions, W12.
func TestASetOfAnotherController(t *testing.T) {
	for name, begin := range map[string]func(c *Cluster){
		"of another class": func(c *Cluster) { foreign(c, map[string]string{v1alpha1.ControllerClass: "grove"}) },
		"in a namespace of another class": func(c *Cluster) {
			labelNamespace(c, "grove")
			foreign(c, nil)
		},
		"beside Grove's operator": func(c *Cluster) {
			c.Create(groveLease())
			foreign(c, nil)
		},
		"of another class, in a namespace of ours": func(c *Cluster) {
			labelNamespace(c, v1alpha1.DefaultControllerClass)
			foreign(c, map[string]string{v1alpha1.ControllerClass: "grove"})
		},
	} {
		for seed := range int64(4) {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				c := New(t, Options{Nodes: Nodes(2, 4), Seed: seed, Interleaved: seed%2 == 1})
				c.HoldBack(&corev1.Namespace{}) // it has just been labelled
				begin(c)
				before, told := versions(c), c.Timeline.String()
				c.Advance(time.Minute)
				c.Deliver(&corev1.Namespace{})
				c.Advance(10 * time.Minute)
				c.Restart()
				c.Advance(10 * time.Minute)
				if diff := cmp.Diff(before, versions(c)); diff != "" {
					c.Fatalf("what belongs to another controller was written (-before +after):\n%s", diff)
				}
				if now := c.Timeline.String(); strings.Count(now, "event ") != strings.Count(told, "event ") {
					c.Fatalf("events:\n%s", now)
				}

				// The other controller replaces a PodClique and its pods, and deletes the set: the garbage collector
				// alone acts.
				for _, clique := range All[*v1alpha1.PodClique](c) {
					if clique.Name == "chat-0-router" {
						c.Delete(clique, client.PropagationPolicy(metav1.DeletePropagationForeground))
					}
				}
				c.Advance(time.Minute)
				if pods := All[*corev1.Pod](c); len(pods) != 2 {
					c.Fatalf("%d pods, want the 2 of the other PodCliques", len(pods))
				}
				c.Delete(theSet(c, "chat"))
				c.Advance(time.Minute)
				if left := versions(c); len(left) > 0 {
					c.Fatalf("left: %q", left)
				}
			})
		}
	}
}

// TestTheClassOfASetChanges: a set that gets another class is left alone from then on, whatever becomes of its pods,
// and its service goes on when it gets its class back.
func TestTheClassOfASetChanges(t *testing.T) {
	for name, tc := range map[string]struct{ leave, enter func(c *Cluster) }{
		"of the set":       {func(c *Cluster) { setClass(c, "grove") }, func(c *Cluster) { setClass(c, "") }},
		"of the namespace": {func(c *Cluster) { labelNamespace(c, "grove") }, func(c *Cluster) { labelNamespace(c, "") }},
		"ours in place of the namespace's": {func(c *Cluster) { labelNamespace(c, "grove") },
			func(c *Cluster) { setClass(c, v1alpha1.DefaultControllerClass) }},
		"Grove's operator comes and goes":            {func(c *Cluster) { c.Create(groveLease()) }, func(c *Cluster) { c.Delete(groveLease()) }},
		"Grove's operator comes, and ours is named":  {func(c *Cluster) { c.Create(groveLease()) }, func(c *Cluster) { setClass(c, v1alpha1.DefaultControllerClass) }},
		"Grove's operator comes, ours by its labels": {func(c *Cluster) { c.Create(groveLease()) }, func(c *Cluster) { labelNamespace(c, v1alpha1.DefaultControllerClass) }},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
			labelNamespace(c, "")
			c.Create(watched(time.Minute, 0))
			c.Advance(time.Minute)
			wantAvailable(c, 8)

			tc.leave(c)
			c.Settle()
			for _, pod := range slices.Clone(All[*corev1.Pod](c)) {
				if strings.HasPrefix(pod.Name, "chat-0-router") {
					c.Delete(pod)
				}
			}
			c.Advance(10 * time.Minute) // longer than the delay after which the replica would be terminated
			if pods := All[*corev1.Pod](c); len(pods) != 6 {
				c.Fatalf("%d pods, want that the 6 of the scaling group run and no other is created", len(pods))
			}
			if s := theSet(c, "chat").Status; s.AvailableReplicas != 1 {
				c.Fatalf("the status was written: %+v", s)
			}

			tc.enter(c)
			c.Advance(30 * time.Second) // before the termination that has been due for minutes
			wantAvailable(c, 8)
		})
	}
}

// TestALeaseOfATenant: a Lease of that name counts in the namespaces of Grove's operator only.
func TestALeaseOfATenant(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
	lease := groveLease()
	lease.Namespace = "ns"
	c.Create(lease)
	another := groveLease()
	another.Name = "another"
	c.Create(another)
	c.Create(podCliqueSet())
	c.Advance(time.Minute)
	wantAvailable(c, 8)
}

// TestAJobThatIsLeftAlone: pods of a job can be deleted after another controller has taken it over.
func TestAJobThatIsLeftAlone(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
	c.Create(trainingSet(1, v1alpha1.TrainingSpec{}))
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
	setClass(c, "grove")
	c.Settle()
	for _, pod := range All[*corev1.Pod](c) {
		if len(pod.Finalizers) > 0 {
			c.Fatalf("pod %s has finalizers %q", pod.Name, pod.Finalizers)
		}
	}
	pods := All[*corev1.Pod](c)
	c.Delete(pods[0])
	c.Advance(time.Minute)
	if n := len(All[*corev1.Pod](c)); n != len(pods)-1 {
		c.Fatalf("%d pods, want that one of %d is gone and not replaced", n, len(pods))
	}
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
}
