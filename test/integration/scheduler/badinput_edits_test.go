// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

func TestPodGroupDeletedWhileItsPodsWait(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.createGang("g", 2, 8)
	c.untilSays("g", v2alpha2.ReasonTooLarge, "1 of 2 pods can be placed")
	c.deleteGroup("g")
	c.untilTold("Pod", "g-0", "PodGroupNotFound", `"g"`)
	c.addNodes(1)
	c.stillSchedules()
	c.notBound("g-0", "g-1")
	if n := c.countEvents("Pod", "g-1")["PodGroupNotFound"]; n != 0 {
		t.Errorf("%d events about the second pod, want one for both", n)
	}

	c.apply(c.group("g").MinMember(2))
	c.untilBound("g", 2)
	c.untilSatisfied("g")
}

func TestPodGroupEditedWhileItsPodsWait(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.createGang("g", 2, 8)
	c.untilSays("g", v2alpha2.ReasonTooLarge, "1 of 2 pods can be placed")
	c.apply(c.group("g").MinMember(3))
	c.untilSays("g", v2alpha2.ReasonWaitingForPods, "needs 3 pods, 2 exist")
	c.apply(c.group("g").SubGroup("workers", 1))
	c.untilSays("g", v2alpha2.ReasonInvalid, "2 pods (g-0, g-1) have no label", "add it", "workers lacks 1 of 1")
	c.apply(c.group("g").MinMember(2))
	c.untilSays("g", v2alpha2.ReasonTooLarge, "1 of 2 pods can be placed")
	c.notBound("g-0", "g-1")
	c.apply(c.group("g").MinMember(1))
	c.untilBound("g", 1)
	s := c.untilSatisfied("g")
	if s.Scheduled != "1/1" || s.ObservedGeneration != 5 {
		t.Errorf("status is of generation %d and says %s bound, want generation 5, 1/1", s.ObservedGeneration, s.Scheduled)
	}
	c.stillSchedules()
}

// The volume of a member does not exist yet, so the gang waits at its barrier, planned and not bound.
func TestPodGroupDeletedWhileItsPodsAreBound(t *testing.T) {
	c := newCluster(t, 2)
	c.startQuick()
	provision := c.createHeldGang("g", 3)
	c.deleteGroup("g")
	c.stillSchedules() // others need not wait at its barrier
	c.notBound("g-0", "g-1", "g-2")
	provision()
	c.untilBound("g", 3) // by the old tree (docs/decisions, G12)
	c.apply(c.group("g").MinMember(3))
	c.untilSatisfied("g")
}

func TestPodGroupEditedWhileItsPodsAreBound(t *testing.T) {
	c := newCluster(t, 2)
	c.startQuick(func(config map[string]any) {
		for _, p := range profiles(config) {
			gangArgs(p)["repairTimeout"] = "1s"
		}
	})
	provision := c.createHeldGang("g", 3)
	c.apply(c.group("g").MinMember(4))
	c.untilStatus("g", "has seen the edit", func(s v2Status) bool { return s.ObservedGeneration == 2 })
	c.notBound("g-0", "g-1", "g-2")
	provision()
	c.untilBound("g", 3) // by the old tree (docs/decisions, G12)
	c.untilSays("g", v2alpha2.ReasonWaitingForPods, "needs 4 pods, 3 exist")
	c.stillSchedules()
	c.create(c.pod("g-3", "g", 1))
	c.untilBound("g", 4)
	c.untilSatisfied("g")
	if n := c.countEvents("PodGroup", "g")[v2alpha2.EventPartialGangReleased]; n > 0 {
		t.Errorf("pods were given back that the old tree had made whole")
	}
}

func TestMemberRecreatedWhileItsGangIsBound(t *testing.T) {
	c := newCluster(t, 2)
	c.startQuick()
	o := c.observe()
	o.expect("g", 3)
	provision := c.createHeldGang("g", 3)
	c.recreate(c.pod("g-1", "g", 1))
	provision()
	c.untilBound("g", 3)
	c.untilSatisfied("g")
	partials, _ := o.stop()
	released(t, partials)
	c.stillSchedules()
}

// The same with the pod that the gang waits for.
func TestMemberWithAClaimRecreatedWhileItsGangIsBound(t *testing.T) {
	c := newCluster(t, 2)
	c.startQuick()
	o := c.observe()
	o.expect("g", 3)
	provision := c.createHeldGang("g", 3)
	c.recreate(c.pod("g-0", "g", 1).Claim("g-data"))
	c.stillSchedules()
	provision()
	c.untilBound("g", 3)
	c.untilSatisfied("g")
	partials, _ := o.stop()
	released(t, partials)
}

// Another scheduler takes the room of a pod while its gang waits for a volume. No pod of the gang is bound there, and
// it starts on other nodes (docs/decisions, G27).
func TestRoomIsTakenWhileAGangIsBound(t *testing.T) {
	c := newCluster(t, 3)
	c.startQuick()
	o := c.observe()
	o.expect("g", 3)
	c.claim("g-data", c.storageClass(), corev1.ReadWriteMany)
	c.apply(c.group("g").MinMember(3))
	for i := range 3 {
		w := c.pod(fmt.Sprintf("g-%d", i), "g", 2)
		if i == 0 {
			w.Claim("g-data")
		}
		c.create(w)
	}
	taken := c.untilNodeChosen("g-data")
	c.create(c.pod("foreign", "", 8).SchedulerName("another").Node(taken))
	c.stillSchedules() // the scheduler has seen the pod
	c.provision("g-data")
	c.untilBound("g", 3)
	for i := range 3 {
		if pod := fmt.Sprintf("g-%d", i); c.nodeOf(pod) == taken {
			t.Errorf("%s was bound to node %s, which has no room for it", pod, taken)
		}
	}
	c.untilSatisfied("g")
	partials, _ := o.stop()
	released(t, partials)
}

// createHeldGang creates a gang of n pods with one GPU each, and returns when it is planned; it cannot be bound before
// provision is called, because its pod 0 has a claim that no provisioner serves.
func (c *cluster) createHeldGang(name string, n int) (provision func()) {
	c.t.Helper()
	class := c.storageClass()
	c.claim(name+"-data", class, corev1.ReadWriteOnce)
	c.apply(c.group(name).MinMember(int32(n)))
	for i := range n {
		w := c.pod(fmt.Sprintf("%s-%d", name, i), name, 1)
		if i == 0 {
			w.Claim(name + "-data")
		}
		c.create(w)
	}
	c.untilNodeChosen(name + "-data")
	return func() { c.t.Helper(); c.provision(name + "-data") }
}

// storageClass creates a class whose claims are bound on the node of their first pod, by an external provisioner:
// provision.
func (c *cluster) storageClass() string {
	return c.storageClassOf(c.namespace, "provisioner.example.com/by-hand")
}

// storageClassOf creates a class whose claims are bound on the node of their first pod.
func (c *cluster) storageClassOf(name, provisioner string) string {
	c.t.Helper()
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &wait}
	_, err := cp.Client().StorageV1().StorageClasses().Create(c.ctx, class, metav1.CreateOptions{})
	c.must(err, "creating a StorageClass")
	c.t.Cleanup(func() {
		_ = cp.Client().StorageV1().StorageClasses().Delete(context.Background(), class.Name, metav1.DeleteOptions{})
		_ = cp.Client().CoreV1().PersistentVolumes().DeleteCollection(context.Background(), metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: "test=" + c.namespace})
	})
	return class.Name
}

func (c *cluster) claim(name, class string, mode corev1.PersistentVolumeAccessMode) {
	c.t.Helper()
	_, err := cp.Client().CoreV1().PersistentVolumeClaims(c.namespace).Create(c.ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: claimSpec(class, mode),
	}, metav1.CreateOptions{})
	c.must(err, "creating claim "+name)
}

// claimSpec asks for a small volume of the class.
func claimSpec(class string, mode corev1.PersistentVolumeAccessMode) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class,
		AccessModes:      []corev1.PersistentVolumeAccessMode{mode},
		Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
}

// untilNodeChosen waits until the scheduler has requested a volume for the claim, and returns the selected node.
func (c *cluster) untilNodeChosen(claim string) (node string) {
	c.t.Helper()
	c.must(controlplane.Until(c.ctx, cp.Client().CoreV1().PersistentVolumeClaims(c.namespace), metav1.ListOptions{FieldSelector: "metadata.name=" + claim},
		func(claims []*corev1.PersistentVolumeClaim) bool {
			if len(claims) == 1 {
				node = claims[0].Annotations[nodeOfClaim]
			}
			return node != ""
		}), "waiting until the scheduler asks for a volume")
	return node
}

// provision creates a volume for the claim, as a provisioner does.
func (c *cluster) provision(claim string) {
	c.t.Helper()
	pvc, err := cp.Client().CoreV1().PersistentVolumeClaims(c.namespace).Get(c.ctx, claim, metav1.GetOptions{})
	c.must(err, "reading claim "+claim)
	_, err = cp.Client().CoreV1().PersistentVolumes().Create(c.ctx, c.volumeFor(pvc), metav1.CreateOptions{})
	c.must(err, "creating a volume for claim "+claim)
}

// volumeFor returns a volume for the claim: one that is written from a single node can be used on the node that the
// scheduler selected for the claim, and on no other.
func (c *cluster) volumeFor(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	node := ""
	if !slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany) {
		if node = claim.Annotations[nodeOfClaim]; node == "" {
			c.t.Fatalf("claim %s has no node yet, so that no volume can be made for it", claim.Name)
		}
	}
	volume := c.volume(c.namespace+"-"+claim.Name, claim.Spec, node)
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: string(claim.UID)}
	volume.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	return volume
}

// nodeOfClaim is the annotation of a claim with the node that the scheduler has selected for it.
const nodeOfClaim = "volume.kubernetes.io/selected-node"

// volume returns a volume without a source that fits a claim, for one node or, if that is "", for all.
func (c *cluster) volume(name string, claim corev1.PersistentVolumeClaimSpec, node string) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"test": c.namespace}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: *claim.StorageClassName, AccessModes: claim.AccessModes, Capacity: claim.Resources.Requests,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		},
	}
	if node != "" {
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}}}
	}
	return volume
}

func TestPodGroupEditedWhileItsPodsRun(t *testing.T) {
	c := newCluster(t, 1) // 8 GPUs
	c.startQuick()
	leaf := func(name, group string, n int, gpus int64) {
		for i := range n {
			c.create(c.pod(fmt.Sprintf("%s-%d", group, i), name, gpus).SubGroup(group))
		}
	}
	c.apply(c.group("g").SubGroup("a", 2))
	leaf("g", "a", 2, 2)
	c.untilBound("g", 2)
	c.untilSatisfied("g")

	// A newly required child is admitted as a unit: 4 of its 6 GPUs are free.
	c.apply(c.group("g").SubGroup("a", 2).SubGroup("b", 2))
	c.untilSays("g", v2alpha2.ReasonWaitingForPods, "needs 4 pods, 2 exist", "b lacks 2 of 2")
	leaf("g", "b", 2, 3)
	s := c.untilStatus("g", "is refused", func(s v2Status) bool {
		return s.Reason != "" && s.Reason != v2alpha2.ReasonWaitingForPods && s.Reason != v2alpha2.ReasonBehindInQueue
	})
	t.Logf("%s: %s", s.Reason, s.Summary)
	if condition(s, v2alpha2.ConditionAdmitted).Status != metav1.ConditionTrue || s.Phase != v2alpha2.PodGroupDegraded {
		t.Errorf("after the edit phase is %s and Admitted is %v", s.Phase, condition(s, v2alpha2.ConditionAdmitted))
	}
	c.notBound("b-0", "b-1")
	c.addNodes(1)
	c.untilBound("g", 4)
	c.untilSatisfied("g")

	// A higher minimum: the gang that runs is only filled up.
	c.apply(c.group("g").SubGroup("a", 3).SubGroup("b", 2))
	c.untilSays("g", v2alpha2.ReasonWaitingForPods, "needs 5 pods, 4 exist", "a lacks 1 of 3")
	c.create(c.pod("a-2", "g", 1).SubGroup("a"))
	c.untilBound("g", 5)
	c.untilSatisfied("g")

	// A sub-group is removed: its pods count for no leaf, and are not deleted.
	before := map[string]string{}
	for _, p := range c.pods() {
		before[p.Name] = string(p.UID)
	}
	c.apply(c.group("g").SubGroup("a", 3))
	s = c.untilStatus("g", "has seen the edit", func(s v2Status) bool {
		return s.ObservedGeneration == 4 && condition(s, v2alpha2.ConditionSatisfied).Status == metav1.ConditionTrue
	})
	if len(s.SubGroups) != 1 || s.Scheduled != "3/3" {
		t.Errorf("without b the status says %s of %v", s.Scheduled, s.SubGroups)
	}
	c.stillSchedules()
	for name, uid := range before {
		if p := c.get(name); string(p.UID) != uid || p.DeletionTimestamp != nil {
			t.Errorf("pod %s was touched", name)
		}
	}
}

func TestPodGroupDeletedWhileItsPodsRun(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.createGang("g", 3, 1)
	c.untilSatisfied("g")
	before := map[string]string{}
	for _, p := range c.pods() {
		before[p.Name] = string(p.UID)
	}
	c.deleteGroup("g")
	c.create(c.pod("g-3", "g", 1)) // of no PodGroup: it waits
	c.untilTold("Pod", "g-3", "PodGroupNotFound", `"g"`)
	c.stillSchedules()
	c.notBound("g-3")
	for name, uid := range before {
		if p := c.get(name); string(p.UID) != uid || p.DeletionTimestamp != nil {
			t.Errorf("pod %s was touched", name)
		}
	}
	// A new PodGroup of the same name takes over all of its pods.
	c.apply(c.group("g").MinMember(4))
	c.untilBound("g", 4)
	c.untilSatisfied("g")
}
