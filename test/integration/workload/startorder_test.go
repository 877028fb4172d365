// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

// ordered has three cliques, each of which starts after others; the second is in a group.
const ordered = `
metadata: {name: o}
spec:
  replicas: 1
  template:
    cliqueStartupType: CliqueStartupTypeExplicit
    cliques:
    - name: first
      annotations: {fake-kubelet.muster.test/ready: "false"}
      spec: {replicas: 2, minAvailable: 1, podSpec: {initContainers: [{name: theirs, image: "registry.example/init:1"}]}}
    - name: second
      spec: {replicas: 1, startsAfter: [first], podSpec: {}}
    - name: third
      spec: {replicas: 1, startsAfter: [second], podSpec: {}}
    podCliqueScalingGroups:
    - {name: g, cliqueNames: [second], replicas: 2, minAvailable: 2}
`

// Simulated nodes do not run the init container, so its program is run here as a process, with the arguments of the pod
// and as the pod's service account, against the same pods.
func TestStartOrder(t *testing.T) {
	w := newWorld(t, 1)
	w.apply(ordered)
	w.untilPods(map[string]int{"o-0-first": 2, "o-0-g-0-second": 1, "o-0-g-1-second": 1, "o-0-third": 1}, false)
	waiting := map[string]*controlplane.Process{}
	for _, p := range w.pods() {
		clique := p.Labels[v1alpha1.LabelPodClique]
		inits := p.Spec.InitContainers
		if clique == "o-0-first" {
			if len(inits) != 1 || inits[0].Name != "theirs" {
				t.Errorf("pod %s, which waits for no other, has init containers %v", p.Name, inits)
			}
			continue
		}
		if len(inits) != 1 || inits[0].Name != v1alpha1.InitContainerName {
			t.Fatalf("pod %s has init containers %v", p.Name, inits)
		}
		if !slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Projected != nil && v.Name == inits[0].VolumeMounts[0].Name }) {
			t.Errorf("pod %s has no projected token for its waiting container", p.Name)
		}
		waiting[clique] = w.wait(p)
	}
	w.until("the pods of the first clique run", cliques, func(objects []*unstructured.Unstructured) bool {
		return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetName() == "o-0-first" && number(o, "scheduledReplicas") == 2
		})
	})
	for _, c := range []string{"o-0-g-0-second", "o-0-g-1-second"} {
		if !waiting[c].Running() {
			t.Errorf("%s does not wait any more:\n%s", c, waiting[c].LogTail(5))
		}
	}

	// One pod of the first clique becomes ready, which is its minimum: the second may start, and with it the third.
	for _, p := range w.pods() {
		if p.Labels[v1alpha1.LabelPodClique] == "o-0-first" {
			w.makeReady(p)
			break
		}
	}
	w.ended(waiting)

	roles := &rbacv1.RoleList{}
	w.must(w.client.List(w.ctx, roles, client.InNamespace(w.namespace)), "listing roles")
	if len(roles.Items) != 1 || roles.Items[0].Name != "grove.io:pcs:o" {
		t.Errorf("roles %v", roles.Items)
	}
	w.delete(sets, "o")
	w.untilGone()
	w.untilNames(rolesKind)
	w.untilNames(bindingsKind)
}

// wait runs muster-wait with the arguments of the pod's waiting container, as the pod's service account.
func (w *world) wait(pod corev1.Pod) *controlplane.Process {
	w.t.Helper()
	args := pod.Spec.InitContainers[0].Args
	kubeconfig, err := cp.ServiceAccountKubeconfig(w.ctx, w.namespace, pod.Spec.ServiceAccountName)
	w.must(err, "making a kubeconfig for the pod's service account")
	path, err := filepath.Abs("../../../bin/muster-wait")
	w.must(err, "finding muster-wait")
	p := cp.NewProcess(controlplane.ProcessOptions{
		Name: fmt.Sprintf("wait-%s-%s", w.namespace, pod.Spec.Hostname),
		Path: path,
		Args: append([]string{"--kubeconfig=" + kubeconfig, "--namespace=" + w.namespace}, args...),
	})
	w.must(p.Start(), "starting muster-wait")
	w.t.Cleanup(p.Kill)
	w.t.Logf("%s: %s", pod.Spec.Hostname, strings.Join(args, " "))
	return p
}

// ended returns when all have exited with 0.
func (w *world) ended(waiting map[string]*controlplane.Process) {
	w.t.Helper()
	for name, p := range waiting {
		select {
		case <-p.Done():
			if err := p.Err(); err != nil {
				w.t.Errorf("%s ended badly: %v\n%s", name, err, p.LogTail(5))
			}
		case <-time.After(patience):
			w.t.Fatalf("%s waits still:\n%s", name, p.LogTail(5))
		}
	}
}

func (w *world) makeReady(p corev1.Pod) {
	w.t.Helper()
	w.must(cp.AnnotatePod(w.ctx, w.namespace, p.Name, map[string]string{controlplane.ReadyAnnotation: "true"}), "making pod "+p.Name+" ready")
}

var (
	rolesKind    = rbacv1.SchemeGroupVersion.WithResource("roles")
	bindingsKind = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
)

// accounts is a clique for which three others wait, whose pods differ in their service accounts.
const accounts = `
metadata: {name: o}
spec:
  replicas: 1
  template:
    cliqueStartupType: CliqueStartupTypeExplicit
    cliques:
    - name: first
      annotations: {fake-kubelet.muster.test/ready: "false"}
      spec: {replicas: 1, podSpec: {}}
    - name: own
      spec: {replicas: 1, startsAfter: [first], podSpec: {serviceAccountName: theirs}}
    - name: none
      spec: {replicas: 1, startsAfter: [first], podSpec: {automountServiceAccountToken: false}}
    - name: plain
      spec: {replicas: 1, startsAfter: [first], podSpec: {serviceAccountName: default}}
`

// A pod waits with its own service account, whichever that is, and with a token of its own, even if the pod mounts
// none: and that account may read the PodCliques of its namespace, and nothing else.
func TestPodsOfAnyAccountSeeWhomTheyWaitFor(t *testing.T) {
	w := newWorld(t, 1)
	w.must(w.client.Create(w.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "theirs"}}), "creating an account")
	w.apply(accounts)
	w.untilPods(map[string]int{"o-0-first": 1, "o-0-own": 1, "o-0-none": 1, "o-0-plain": 1}, false)
	const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"
	mounts := func(c corev1.Container) (names []string) {
		for _, m := range c.VolumeMounts {
			if m.MountPath == tokenPath {
				names = append(names, m.Name)
			}
		}
		return names
	}
	waiting := map[string]*controlplane.Process{}
	var first corev1.Pod
	for _, p := range w.pods() {
		clique := p.Labels[v1alpha1.LabelPodClique]
		if clique == "o-0-first" {
			first = p
			continue
		}
		if want := map[string]string{"o-0-own": "theirs"}[clique]; want != "" && p.Spec.ServiceAccountName != want {
			t.Errorf("pod %s has account %s, want %s", p.Name, p.Spec.ServiceAccountName, want)
		}
		token := mounts(p.Spec.InitContainers[0])
		if len(token) != 1 || !slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
			return v.Name == token[0] && v.Projected != nil && v.Projected.Sources[0].ServiceAccountToken != nil
		}) {
			t.Errorf("pod %s waits with the tokens %v of volumes %v", p.Name, token, p.Spec.Volumes)
		}
		if got, wants := len(mounts(p.Spec.Containers[0])) > 0, clique != "o-0-none"; got != wants {
			t.Errorf("the container of pod %s has a token: %t, want %t", p.Name, got, wants)
		}
		waiting[clique] = w.wait(p)
	}
	w.makeReady(first)
	w.ended(waiting)

	for _, tc := range []struct {
		account, namespace, verb, group, resource string
		want                                      bool
	}{
		{"theirs", w.namespace, "watch", "grove.io", "podcliques", true},
		{"default", w.namespace, "list", "grove.io", "podcliquescalinggroups", true},
		{"theirs", w.namespace, "update", "grove.io", "podcliques", false},
		{"theirs", w.namespace, "get", "grove.io", "podcliquesets", false},
		{"theirs", w.namespace, "list", "", "pods", false},
		{"default", w.namespace, "get", "", "secrets", false},
		{"theirs", "default", "list", "grove.io", "podcliques", false},
	} {
		review, err := cp.Client().AuthorizationV1().SubjectAccessReviews().Create(w.ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               "system:serviceaccount:" + w.namespace + ":" + tc.account,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: tc.namespace, Verb: tc.verb, Group: tc.group, Resource: tc.resource},
			}}, metav1.CreateOptions{})
		w.must(err, "asking what the account may do")
		if review.Status.Allowed != tc.want {
			t.Errorf("%s may %s %s in %s: %t, want %t", tc.account, tc.verb, tc.resource, tc.namespace, review.Status.Allowed, tc.want)
		}
	}
}

// If muster-controller may not create Roles, the set reports the consequence once, and everything else works; when the
// right is granted the Role is created, and created again after a user deletes it.
func TestStartOrderWithoutTheRightToGrantAccess(t *testing.T) {
	w := newWorld(t, 1)
	key := client.ObjectKey{Name: "muster-controller"}
	full := &rbacv1.ClusterRole{}
	w.must(w.client.Get(w.ctx, key, full), "reading the rights of muster-controller")
	give := func(rules []rbacv1.PolicyRule) {
		t.Helper()
		w.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			role := &rbacv1.ClusterRole{}
			if err := w.client.Get(w.ctx, key, role); err != nil {
				return err
			}
			role.Rules = rules
			return w.client.Update(w.ctx, role)
		}), "changing the rights of muster-controller")
	}
	t.Cleanup(func() { give(full.Rules) })
	give(slices.DeleteFunc(slices.Clone(full.Rules), func(r rbacv1.PolicyRule) bool { return r.APIGroups[0] == rbacv1.GroupName }))
	controller.Kill() // it starts without the right, too
	w.must(cp.Restart(w.ctx, controller), "starting muster-controller")

	w.apply(ordered)
	w.untilPods(map[string]int{"o-0-first": 2, "o-0-g-0-second": 1, "o-0-g-1-second": 1, "o-0-third": 1}, false)
	w.untilCondition(sets, "o", v1alpha1.ConditionReplicaFailure, "True")
	w.until("the message says what and why", sets, func(objects []*unstructured.Unstructured) bool {
		message := conditionOf(objects[0], v1alpha1.ConditionReplicaFailure, "message")
		errors, _, _ := unstructured.NestedSlice(objects[0].Object, "status", "lastErrors")
		return len(errors) == 1 && strings.Contains(message, "granting access to pods that wait for other cliques") && strings.Contains(message, "forbidden")
	})

	give(full.Rules)
	w.untilNames(rolesKind, "grove.io:pcs:o")
	w.untilNames(bindingsKind, "grove.io:pcs:o")
	w.until("the failure is forgotten", sets, func(objects []*unstructured.Unstructured) bool {
		return len(objects) == 1 && conditionOf(objects[0], v1alpha1.ConditionReplicaFailure, "status") == ""
	})
	w.toldOnce("o", v1alpha1.ReasonCreateRefused)
	for _, kind := range []schema.GroupVersionResource{bindingsKind, rolesKind} {
		uid := w.only(kind).GetUID()
		w.delete(kind, "grove.io:pcs:o")
		w.until("it is there again", kind, func(objects []*unstructured.Unstructured) bool {
			return len(objects) == 1 && objects[0].GetUID() != uid
		})
	}
}

// A set is deleted and immediately created again under the same name: the Role of the first is not taken for that of
// the second, and does not prevent its creation.
func TestStartOrderOfARecreatedSet(t *testing.T) {
	w := newWorld(t, 1)
	for range 3 {
		set := w.apply(ordered)
		for _, kind := range []schema.GroupVersionResource{rolesKind, bindingsKind} {
			w.until("the access is that of the present set", kind, func(objects []*unstructured.Unstructured) bool {
				return len(objects) == 1 && objects[0].GetDeletionTimestamp() == nil && objects[0].GetOwnerReferences()[0].UID == set.UID
			})
		}
		w.delete(sets, "o")
		w.until("the set is gone", sets, none)
	}
	w.untilGone()
	w.untilNames(rolesKind)
	w.untilNames(bindingsKind)
}

// What a person changes of objects that the controllers own is changed back.
func TestOwnedObjectsChangedByHand(t *testing.T) {
	w := newWorld(t, 1)
	w.apply(strings.Replace(ordered, "minAvailable: 2}", "minAvailable: 2, scaleConfig: {minReplicas: 2, maxReplicas: 3}}", 1))
	w.untilNames(hpas, "o-0-g")
	w.untilNames(bindingsKind, "grove.io:pcs:o")
	for kind, change := range map[schema.GroupVersionResource]string{
		services:     `{"spec":{"selector":{"app":"theirs"}}}`,
		hpas:         `{"spec":{"maxReplicas":9}}`,
		podGroups:    `{"spec":{"priorityClassName":"system-node-critical"}}`,
		rolesKind:    `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`,
		bindingsKind: `{"subjects":[]}`,
	} {
		w.until("it is there", kind, func(objects []*unstructured.Unstructured) bool { return len(objects) == 1 })
		before := w.only(kind)
		_, err := w.dynamic.Resource(kind).Namespace(w.namespace).Patch(w.ctx, before.GetName(), types.MergePatchType, []byte(change), metav1.PatchOptions{})
		w.must(err, "changing "+before.GetName())
		w.until("it is as it was", kind, func(objects []*unstructured.Unstructured) bool {
			if len(objects) != 1 || objects[0].GetUID() != before.GetUID() {
				return false
			}
			for _, part := range []string{"rules", "subjects", "spec"} {
				if kind == services {
					selector, _, _ := unstructured.NestedStringMap(objects[0].Object, "spec", "selector")
					return selector[v1alpha1.LabelPartOf] == "o"
				}
				if !equality.Semantic.DeepEqual(before.Object[part], objects[0].Object[part]) {
					return false
				}
			}
			return true
		})
	}
}

// toldOnce waits for an event of that reason about an object, and fails the test if there is more than one, or one that
// was repeated.
func (w *world) toldOnce(name, reason string) {
	w.t.Helper()
	told := 0
	w.until("an event "+reason+" tells of "+name, eventsv1.SchemeGroupVersion.WithResource("events"), func(objects []*unstructured.Unstructured) bool {
		told = 0
		for _, o := range objects {
			regarding, _, _ := unstructured.NestedString(o.Object, "regarding", "name")
			if why, _, _ := unstructured.NestedString(o.Object, "reason"); regarding == name && why == reason {
				repeated, _, _ := unstructured.NestedInt64(o.Object, "series", "count")
				told += int(max(repeated, 1))
			}
		}
		return told > 0
	})
	if told > 1 {
		w.t.Errorf("%s was told of %s %d times, want once", reason, name, told)
	}
}

// only returns the one object of a kind.
func (w *world) only(kind schema.GroupVersionResource) *unstructured.Unstructured {
	w.t.Helper()
	list, err := w.dynamic.Resource(kind).Namespace(w.namespace).List(w.ctx, metav1.ListOptions{})
	w.must(err, "listing "+kind.Resource)
	if len(list.Items) != 1 {
		w.t.Fatalf("there are %d %s, want 1", len(list.Items), kind.Resource)
	}
	return &list.Items[0]
}

// In order, every clique waits for the one before it.
func TestStartInOrder(t *testing.T) {
	w := newWorld(t, 1)
	w.apply(strings.Replace(small("i", "one", "two", "three"), "  template:\n", "  template:\n    cliqueStartupType: CliqueStartupTypeInOrder\n", 1))
	w.untilPods(map[string]int{"i-0-one": 1, "i-0-two": 1, "i-0-three": 1}, true)
	for _, p := range w.pods() {
		want := map[string]string{"i-0-one": "", "i-0-two": "i-0-one", "i-0-three": "i-0-two"}[p.Labels[v1alpha1.LabelPodClique]]
		var args string
		for _, c := range p.Spec.InitContainers {
			args += strings.Join(c.Args, " ")
		}
		if want == "" && args != "" || want != "" && !strings.Contains(args, `"`+want+`"`) {
			t.Errorf("pod %s waits with %q, want for %q", p.Name, args, want)
		}
	}
}
