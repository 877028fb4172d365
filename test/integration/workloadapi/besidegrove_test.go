// SPDX-License-Identifier: Apache-2.0

package workloadapi

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

// asGrove returns a client of Grove's operator.
func asGrove(t *testing.T, cp *controlplane.ControlPlane) *user {
	t.Helper()
	u := newUser(t, cp)
	config, err := cp.UserConfig("system:serviceaccount:grove-system:grove-operator", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	config.WarningHandler = &u.warnings
	if u.Client, err = client.NewWithWatch(config, client.Options{Scheme: u.Scheme()}); err != nil {
		t.Fatal(err)
	}
	return u
}

// observed waits until muster-controller has written the status of a set.
func (u *user) observed(ctx context.Context, set *v1alpha1.PodCliqueSet) {
	u.t.Helper()
	watcher, err := u.Client.(client.WithWatch).Watch(ctx, &v1alpha1.PodCliqueSetList{}, client.InNamespace(u.namespace))
	if err != nil {
		u.t.Fatal(err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if now, ok := event.Object.(*v1alpha1.PodCliqueSet); ok && event.Type != watch.Deleted && now.Name == set.Name && now.Status.ObservedGeneration > 0 {
			return
		}
	}
	u.t.Fatalf("muster-controller does not serve PodCliqueSet %s", set.Name)
}

// content returns the objects of the namespace, without managed fields.
func (u *user) content() (sets []v1alpha1.PodCliqueSet, groups []v1alpha1.PodCliqueScalingGroup, cliques []v1alpha1.PodClique) {
	u.t.Helper()
	a, b, c := &v1alpha1.PodCliqueSetList{}, &v1alpha1.PodCliqueScalingGroupList{}, &v1alpha1.PodCliqueList{}
	for _, list := range []client.ObjectList{a, b, c} {
		if err := u.List(u.t.Context(), list, client.InNamespace(u.namespace)); err != nil {
			u.t.Fatal(err)
		}
	}
	return a.Items, b.Items, c.Items
}

// TestBesideGrovesOperator: muster-controller runs while Grove's operator has its Lease. What that one writes is
// accepted and stays as it is, also what muster-controller would reject or delete; a set that names muster-controller's
// class is served beside it. When the Lease is gone, so are the differences. In a namespace of Grove's no webhook is
// called. Source: docs/decisions, W12.
func TestBesideGrovesOperator(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cp := separate(t)
	grove, ours := asGrove(t, cp), asGrove(t, cp)
	check(t, grove.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "grove-system"}}))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "grove-system", Name: "grove-operator-leader-election"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr("grove-operator-0")}}
	_, err := cp.Client().CoordinationV1().Leases(lease.Namespace).Create(ctx, lease, metav1.CreateOptions{})
	check(t, err)
	controller, err := cp.StartMusterController(ctx, controlplane.ControllerOptions{})
	if err != nil {
		t.Fatal(err)
	}

	theirs := func(u *user) (set *v1alpha1.PodCliqueSet, group *v1alpha1.PodCliqueScalingGroup, clique, member *v1alpha1.PodClique) {
		set = u.typed()
		group, clique, member = u.family(set)
		extra := clique.DeepCopy() // which the template does not have
		extra.ObjectMeta = metav1.ObjectMeta{Name: "svc-0-extra", Labels: clique.Labels, OwnerReferences: clique.OwnerReferences}
		u.create(extra)
		for _, o := range []client.Object{clique, member} {
			check(t, u.patch(o, `{"spec":{"podSpec":{"containers":[{"name":"main","image":"another"}]}}}`))
		}
		check(t, u.patch(group, `{"spec":{"replicas":1}}`))
		check(t, u.scale(member, 3)) // which its scaling group would forbid
		return set, group, clique, member
	}
	set, _, _, _ := theirs(grove)
	sets, groups, cliques := grove.content()
	if name := cliques[0].Spec.PodSpec.SchedulerName; name != "" {
		t.Errorf("a PodClique of Grove's got the schedulerName %q", name)
	}

	served := ours.typed()
	served.Annotations = map[string]string{v1alpha1.ControllerClass: v1alpha1.DefaultControllerClass}
	ours.create(served)
	ours.observed(ctx, served)
	setsNow, groupsNow, cliquesNow := grove.content()
	if diff := cmp.Diff(sets, setsNow) + cmp.Diff(groups, groupsNow) + cmp.Diff(cliques, cliquesNow); diff != "" {
		t.Errorf("objects of Grove's operator (-before +after):\n%s", diff)
	}

	check(t, cp.Client().CoordinationV1().Leases(lease.Namespace).Delete(ctx, lease.Name, metav1.DeleteOptions{}))
	grove.observed(ctx, set)

	labelled := asGrove(t, cp)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "grove-" + labelled.namespace, Labels: map[string]string{v1alpha1.ControllerClass: "grove"}}}
	check(t, labelled.Create(ctx, namespace))
	labelled.namespace = namespace.Name
	controller.Kill()
	theirs(labelled)
	check(t, labelled.scale(&v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "svc", Namespace: labelled.namespace}}, 2))
}
