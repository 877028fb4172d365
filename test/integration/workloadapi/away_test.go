// SPDX-License-Identifier: Apache-2.0

package workloadapi

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// TestNobodyAnswers: while the webhook server is unavailable, writes that would change a workload are rejected, with
// the name of the webhook. Writes of garbage collection, controllers and users to finalizers and status pass, and all
// writes to an object that is being deleted.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	cp := separate(t)
	server, err := webhookServer(cp, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u := newUser(t, cp)
	pcs := u.typed()
	group, standalone, member := u.family(pcs)
	server.Kill()

	refused := func(err error, webhook string) {
		t.Helper()
		if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), webhook) {
			t.Errorf("%v, want that %s is not called", err, webhook)
		}
	}
	for o, kind := range map[client.Object]string{pcs: "podcliquesets", group: "podcliquescalinggroups", standalone: "podcliques", member: "podcliques"} {
		refused(u.scale(o, 5), kind+"-scale.grove.io")
		refused(u.patch(o, `{"spec":{"replicas":5}}`), kind+".grove.io")
		fresh := o.DeepCopyObject().(client.Object)
		fresh.SetName(o.GetName() + "-new")
		fresh.SetResourceVersion("")
		fresh.SetUID("")
		refused(u.Create(t.Context(), fresh), kind+".grove.io")

		check(t, u.patch(o, `{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"},"finalizers":["test/hold"]}}`))
		live := o.DeepCopyObject().(client.Object)
		check(t, u.Get(t.Context(), client.ObjectKeyFromObject(o), live))
		check(t, u.Status().Patch(t.Context(), live, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"observedGeneration":7}}`))))
	}
	check(t, u.patch(member, `{"metadata":{"ownerReferences":null}}`)) // orphaned
	for _, o := range []client.Object{member, standalone, group, pcs} {
		check(t, u.Delete(t.Context(), o, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		check(t, u.patch(o, `{"spec":{"replicas":5}}`))
		check(t, u.patch(o, `{"metadata":{"labels":{"a":"c"}}}`))
		check(t, u.patch(o, `{"metadata":{"finalizers":null}}`))
		if err := u.Get(t.Context(), client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object)); !apierrors.IsNotFound(err) {
			t.Errorf("%s is still there: %v", o.GetName(), err)
		}
	}

	podGroup := u.read("apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: a}\nspec: {minMember: 2}")
	check(t, u.Create(t.Context(), podGroup))
}

// TestAnUpdateThatIsNoChange: updates that do not change the spec, or of an object that is being deleted, pass even if
// the webhook would reject the spec.
func TestAnUpdateThatIsNoChange(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster)
	training := u.typed("spec:\n", "spec:\n  workloadType: Training\n")
	group, standalone, member := u.family(training)
	for _, o := range []client.Object{training, group, standalone, member} {
		check(t, u.patch(o, `{"metadata":{"finalizers":["test/hold"]}}`))
	}
	for _, o := range []client.Object{training, group, standalone, member} {
		check(t, u.Delete(t.Context(), o))
		if o != client.Object(training) { // this rule is the CRD's, which does not distinguish deletion
			check(t, u.patch(o, `{"spec":{"replicas":7}}`))
			check(t, u.scale(o, 8))
		}
		check(t, u.patch(o, `{"metadata":{"labels":{"a":"b"}}}`))
		check(t, u.patch(o, `{"metadata":{"finalizers":null}}`))
	}
	live := &v1alpha1.PodCliqueSetList{}
	check(t, u.List(t.Context(), live, client.InNamespace(u.namespace)))
	if len(live.Items) != 0 {
		t.Errorf("%d sets are left", len(live.Items))
	}
}
