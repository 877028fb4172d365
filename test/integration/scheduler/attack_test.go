// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/marks/secret"
	"github.com/muster-project/muster/test/controlplane"
)

// tenant returns a client that may create and patch pods in this namespace, and not delete them.
func (c *cluster) tenant() kubernetes.Interface {
	c.t.Helper()
	const user = "tenant"
	_, err := cp.Client().RbacV1().Roles(c.namespace).Create(c.ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "create", "patch"}},
			{APIGroups: []string{v2alpha2.GroupName}, Resources: []string{"podgroups"}, Verbs: []string{"get", "create", "patch"}},
		},
	}, metav1.CreateOptions{})
	c.must(err, "creating a role")
	_, err = cp.Client().RbacV1().RoleBindings(c.namespace).Create(c.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	c.must(err, "binding a role")
	config, err := cp.UserConfig(user)
	c.must(err, "making a user")
	client, err := kubernetes.NewForConfig(config)
	c.must(err, "making the user's client")
	// The API server observes the rules after some time and sends no event about it, so this polls.
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err = client.CoreV1().Pods(c.namespace).List(c.ctx, metav1.ListOptions{}); err == nil {
			return client
		}
		if time.Now().After(deadline) {
			c.must(err, "waiting for the user's rights")
		}
	}
}

// unsignedMark returns the mark that a user can write without the key: the correct PodGroup, number of pods, and sum of
// hashes of their UIDs.
func unsignedMark(group types.UID, pods []*corev1.Pod) string {
	var sum uint64
	for _, pod := range pods {
		f := fnv.New64a()
		f.Write([]byte(pod.UID))
		h := f.Sum64()
		h = (h ^ h>>33) * 0xff51afd7ed558ccd
		h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
		sum += h ^ h>>33
	}
	return fmt.Sprintf("%s/%d/%016x", group, len(pods), sum)
}

// forge creates a tenant's gang of 4, one pod of which is bound to a node by the tenant, and returns that pod. The
// others request this number of GPUs. The tenant patches the pod to look as if the scheduler had bound it.
func (c *cluster) forge(tenant kubernetes.Interface, gang string, gpus int64, mark func(types.UID, []*corev1.Pod) string) *corev1.Pod {
	c.t.Helper()
	c.apply(c.group(gang).MinMember(4))
	owner := c.owner(gang)
	var pods []*corev1.Pod
	for _, name := range names(gang, 0, 4) {
		w := c.pod(name, gang, gpus)
		if name == gang+"-0" {
			w = c.pod(name, gang, 2).Node(c.nodes[0])
		}
		pod := w.Obj()
		pod.OwnerReferences = []metav1.OwnerReference{owner}
		created, err := tenant.CoreV1().Pods(c.namespace).Create(c.ctx, pod, metav1.CreateOptions{})
		c.must(err, "creating pod "+name+" as a tenant")
		pods = append(pods, created)
	}
	group, err := c.dynamic.Resource(podGroups).Namespace(c.namespace).Get(c.ctx, gang, metav1.GetOptions{})
	c.must(err, "reading the PodGroup")
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v2alpha2.BoundForAnnotation, mark(group.GetUID(), pods))
	patched, err := tenant.CoreV1().Pods(c.namespace).Patch(c.ctx, gang+"-0", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	c.must(err, "patching a pod as a tenant")
	return patched
}

// A tenant who may patch pods but not delete them makes pods look as if a crash had left them: with a forged
// annotation, and with the mark of a pod that the scheduler did bind. No pod is deleted. The test also has a gang that
// is really partial and whose repair timeout begins later: its release shows that the timeout of the forged gangs is
// over.
func TestForgedMarksDeleteNothing(t *testing.T) {
	c := newCluster(t, 2)
	tenant := c.tenant()
	err := tenant.CoreV1().Pods(c.namespace).Delete(c.ctx, "any", metav1.DeleteOptions{})
	if !apierrors.IsForbidden(err) {
		t.Fatalf("the tenant may delete pods: %v", err)
	}
	lift := c.refuseBindings(names("partial", 3, 4), nil)
	defer lift()
	c.startWith(map[string]any{"repairTimeout": "2s"})
	c.createGang("genuine", 2, 1)
	c.untilAdmitted("genuine")
	genuine := ""
	for _, p := range c.pods() {
		genuine = p.Annotations[v2alpha2.BoundForAnnotation]
	}
	if genuine == "" {
		t.Fatal("bound pods carry no mark")
	}
	const tooLarge = 9 // the gangs cannot be completed
	victims := map[string]*corev1.Pod{
		"forged": c.forge(tenant, "forged", tooLarge, unsignedMark),
		"copied": c.forge(tenant, "copied", tooLarge, func(types.UID, []*corev1.Pod) string { return genuine }),
	}
	if _, err := tenant.CoreV1().Pods(c.namespace).Patch(c.ctx, "forged-0", types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"DisruptionTarget","status":"True","reason":"PartialGangReleased"}]}}`), metav1.PatchOptions{}, "status"); !apierrors.IsForbidden(err) {
		t.Fatalf("the tenant may write a pod's status: %v", err)
	}
	since := time.Now()
	c.createOwnedGang("partial", 4, 1)
	c.untilBound("partial", 3)
	c.until("the gang that is bound in part is released", time.Minute, func(pods []*corev1.Pod) bool { return bound(pods, "partial") == 0 })
	for _, p := range c.pods() {
		for gang, victim := range victims {
			if p.Name == victim.Name && p.UID == victim.UID && p.DeletionTimestamp == nil {
				delete(victims, gang)
			}
		}
	}
	for gang, victim := range victims {
		t.Errorf("pod %s with a %s mark was deleted", victim.Name, gang)
	}
	for _, w := range c.writes(since) {
		if w.verb == "delete" && w.resource == "pods" && (w.name == "forged-0" || w.name == "copied-0") {
			t.Errorf("the scheduler deleted %s", w.name)
		}
	}
}

// A tenant's pod that was bound by the tenant, with a forged mark, does not improve the rank of its gang: a pod of high
// priority takes the room that both need.
func TestForgedMarksGiveNoRank(t *testing.T) {
	c := newCluster(t, 1)
	tenant := c.tenant()
	class, err := cp.Client().SchedulingV1().PriorityClasses().Create(c.ctx, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace}, Value: 1_000_000}, metav1.CreateOptions{})
	c.must(err, "creating a priority class")
	t.Cleanup(func() {
		_ = cp.Client().SchedulingV1().PriorityClasses().Delete(c.ctx, class.Name, metav1.DeleteOptions{})
	})
	c.forge(tenant, "forged", 2, unsignedMark) // 2 of 8 GPUs by hand, 6 for the rest
	important := c.pod("important", "", 4).Obj()
	important.Spec.PriorityClassName = class.Name
	_, err = cp.Client().CoreV1().Pods(c.namespace).Create(c.ctx, important, metav1.CreateOptions{})
	c.must(err, "creating a pod")
	c.startWith(nil)
	c.until("one of both has the room", time.Minute, func(pods []*corev1.Pod) bool {
		for _, p := range pods {
			if p.Name == "important" && p.Spec.NodeName != "" {
				return true
			}
		}
		return bound(pods, "forged") == 4
	})
	if n := c.boundNow("forged"); n != 1 {
		t.Errorf("%d pods of the gang with the forged mark are bound, and the pod of high priority waits", n)
	}
}

// Only the scheduler has the key. It can be replaced while the scheduler runs: a gang whose marks are signed with the
// old key is still released.
func TestTheKeyIsReplacedWhileAGangIsBoundInPart(t *testing.T) {
	c := newCluster(t, 1)
	lift := c.refuseBindings(names("gang", 2, 4), nil)
	defer lift()
	c.startWith(map[string]any{"repairTimeout": "4s"})
	c.createOwnedGang("gang", 4, 1)
	c.untilBound("gang", 2)
	c.scheduler.Kill()
	patch := `{"stringData":{"rotated":"a new key of the test, long enough","current":"rotated"}}`
	secrets := cp.Client().CoreV1().Secrets(controlplane.MusterNamespace)
	before, err := secrets.Get(c.ctx, secret.Name, metav1.GetOptions{})
	c.must(err, "reading the keys")
	t.Cleanup(func() { // the key of the other tests
		_, err := secrets.Patch(c.ctx, secret.Name, types.MergePatchType,
			[]byte(fmt.Sprintf(`{"data":{"rotated":null},"stringData":{"current":%q}}`, before.Data["current"])), metav1.PatchOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	_, err = secrets.Patch(c.ctx, secret.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	c.must(err, "replacing the key")
	c.restart()
	c.until("the gang is released", time.Minute, func(pods []*corev1.Pod) bool { return bound(pods, "gang") == 0 })
	c.createGang("next", 2, 1)
	c.untilAdmitted("next")
	for _, p := range c.pods() {
		if p.Annotations[v2alpha2.PodGroupAnnotation] == "next" && p.Annotations[v2alpha2.BoundForAnnotation] == "" {
			t.Error("with the new key bindings carry no mark")
		}
	}
}

// An elastic gang needs 4 of 6, and 2 are bound when the scheduler is killed: the objects show which of the waiting
// four were to follow, so it is released.
func TestElasticGangBoundInPartIsReleased(t *testing.T) {
	c := newCluster(t, 1)
	lift := c.refuseBindings(names("gang", 2, 6), nil)
	c.startWith(map[string]any{"repairTimeout": "2s"})
	owner := c.owner("gang")
	c.apply(c.group("gang").MinMember(4))
	for _, pod := range names("gang", 0, 6) {
		c.createOwned(c.pod(pod, "gang", 1), owner)
	}
	c.untilBound("gang", 2)
	c.scheduler.Kill()
	lift()
	c.cordon(true, c.nodes...)
	c.restart()
	c.until("the gang is released", time.Minute, func(pods []*corev1.Pod) bool { return bound(pods, "gang") == 0 })
}
