// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

// serveVolumes binds volumes to claims as kube-controller-manager does, and counts their versions as an API server
// does.
func (c *cluster) serveVolumes() {
	c.t.Helper()
	version := atomic.Int64{}
	next := func() string { return strconv.FormatInt(version.Add(1)+1, 10) }
	claims, volumes := corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), corev1.SchemeGroupVersion.WithResource("persistentvolumes")
	c.client.PrependReactor("update", "persistentvolumes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		v := a.(clienttesting.UpdateAction).GetObject().(*corev1.PersistentVolume).DeepCopy()
		v.ResourceVersion, v.Status.Phase = next(), corev1.VolumeBound
		if err := c.client.Tracker().Update(volumes, v, ""); err != nil {
			return true, nil, err
		}
		obj, err := c.client.Tracker().Get(claims, v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name)
		if err != nil {
			return true, nil, err
		}
		claim := obj.(*corev1.PersistentVolumeClaim).DeepCopy()
		claim.ResourceVersion, claim.Spec.VolumeName, claim.Status.Phase = next(), v.Name, corev1.ClaimBound
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storagehelpers.AnnBindCompleted, "yes")
		return true, v, c.client.Tracker().Update(claims, claim, claim.Namespace)
	})
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "on-node"}, Provisioner: storagehelpers.NotSupportedProvisioner, VolumeBindingMode: &mode}
	if _, err := c.client.StorageV1().StorageClasses().Create(c.ctx, class, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// storage returns the spec of a claim of a volume of one node.
func storage() corev1.PersistentVolumeClaimSpec {
	class := "on-node"
	return corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}
}

// nodesWithVolumes adds nodes with eight GPUs, and so many volumes.
func (c *cluster) nodesWithVolumes(nodes, volumes int) {
	c.t.Helper()
	for i := range nodes {
		node := fmt.Sprintf("n%d", i)
		for k := range volumes {
			v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", node, k), ResourceVersion: "1"}, Spec: corev1.PersistentVolumeSpec{
				StorageClassName: "on-node", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: storage().Resources.Requests,
				PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/disk"}},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}},
				Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}
			if _, err := c.client.CoreV1().PersistentVolumes().Create(c.ctx, v, metav1.CreateOptions{}); err != nil {
				c.t.Fatal(err)
			}
		}
		c.node(wrappers.MakeNode(node).GPUs(8))
	}
}

func (c *cluster) claim(name string, owners ...metav1.OwnerReference) {
	c.t.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: typesUID(name), ResourceVersion: "1", OwnerReferences: owners},
		Spec: storage(), Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
	if _, err := c.client.CoreV1().PersistentVolumeClaims("ml").Create(c.ctx, claim, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// TestGangWithVolumesStarts: a gang whose pods have volumes of their own starts by its first plan, which uses all
// volumes that there are, also if its claims are made after its pods (docs/decisions, G18).
func TestGangWithVolumesStarts(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes, volumes int
		ephemeral      bool
	}{
		"4 pods":              {1, 4, false},
		"64 pods":             {16, 4, false},
		"128 pods":            {32, 4, false},
		"24 ephemeral claims": {6, 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			plans, refused := map[uint64]bool{}, 0
			var c *cluster
			c = newCluster(t, opinions(func(point, pod, _ string) *fwk.Status {
				mu.Lock()
				defer mu.Unlock()
				if plan := c.gangs.registry.PlanOf(typesUID("uid-" + pod)); plan != nil && point == "Reserve" {
					plans[plan.ID] = true
				}
				if point == "Unreserve" {
					refused++
				}
				return nil
			}), func(_ *cluster, _ *bool, args *config.GangAdmissionArgs) { args.BarrierTimeout.Duration = time.Minute })
			c.serveVolumes()
			c.nodesWithVolumes(tc.nodes, tc.volumes)
			n := tc.nodes * tc.volumes
			pods := members("a", n)
			for _, p := range pods {
				if tc.ephemeral {
					p.Spec(func(s *corev1.PodSpec) {
						s.Volumes = []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
							VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: storage()}}}}}
					})
				} else {
					c.claim(p.Obj().Name + "-disk")
					p.Claim(p.Obj().Name + "-disk")
				}
			}
			c.run().groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(int32(n)).Obj())
			began := time.Now()
			c.pod(pods...)
			if tc.ephemeral {
				c.refused("a")
				if f, _ := c.gangs.registry.Facts(key("a")); f.Refused.Reason != v2alpha2.ReasonClaimsNotReady || !strings.Contains(f.Refused.Message, "waiting for ephemeral volume controller") {
					t.Errorf("without claims the gang is refused for %+v", f.Refused)
				}
				isController := true
				for _, p := range pods {
					name := p.Obj().Name
					c.claim(name+"-disk", metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: name, UID: "uid-" + typesUID(name), Controller: &isController})
				}
			}
			c.wholeOf("a", n)
			mu.Lock()
			defer mu.Unlock()
			t.Logf("%d pods started after %s", n, time.Since(began).Round(time.Millisecond))
			if len(plans) != 1 || refused > 0 {
				t.Errorf("%d plans, %d members refused", len(plans), refused)
			}
		})
	}
}

// TestNobodyEndsForVolumes: a gang whose pods have more volumes than the nodes can attach preempts nobody; when the
// limit is raised, it takes the room.
func TestNobodyEndsForVolumes(t *testing.T) {
	t.Parallel()
	const driver = "disks.example.com"
	c := newCluster(t)
	limit := func(n int32) *storagev1.CSINode {
		return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n0"}, Spec: storagev1.CSINodeSpec{
			Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: "n0", Allocatable: &storagev1.VolumeNodeResources{Count: &n}}}}}
	}
	if _, err := c.client.StorageV1().CSINodes().Create(c.ctx, limit(3), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: fmt.Sprintf("disk-%d", i), UID: typesUID(fmt.Sprint(i)), ResourceVersion: "1",
			Annotations: map[string]string{storagehelpers.AnnBindCompleted: "yes"}}, Spec: storage(), Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
		claim.Spec.VolumeName = claim.Name
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Name, ResourceVersion: "1"}, Spec: corev1.PersistentVolumeSpec{
			ClaimRef:               &corev1.ObjectReference{Namespace: "ml", Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: claim.Name}}},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}
		if _, err := c.client.CoreV1().PersistentVolumes().Create(c.ctx, volume, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.client.CoreV1().PersistentVolumeClaims("ml").Create(c.ctx, claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.node(wrappers.MakeNode("n0").GPUs(4)).run().rankedGang("low", 0, 4, 4).wholeOf("low", 4)
	c.groups.Put(wrappers.MakePodGroup("high", "ml").UID("high").Generation(1).MinMember(4).Obj())
	for i, p := range members("high", 4) {
		c.pod(p.Priority(100).Claim(fmt.Sprintf("disk-%d", i)))
	}
	c.eventually("it is said that preemption would not help", func() bool {
		f, _ := c.gangs.registry.Facts(key("high"))
		return f.NoHelp != ""
	})
	if got := c.evicted(); len(got) > 0 {
		t.Fatalf("evicted %v for a gang that cannot start", got)
	}
	if _, err := c.client.StorageV1().CSINodes().Update(c.ctx, limit(4), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.wholeOf("high", 4)
}

// TestNobodyEndsForStorageThatIsNotCounted: of storage that is left for volumes that are made on demand a plan counts
// one claim at a time, so a gang of several pods that needs it preempts nobody. Where no driver tells how much is left,
// it does.
func TestNobodyEndsForStorageThatIsNotCounted(t *testing.T) {
	t.Parallel()
	const driver = "disks.example.com"
	for _, tc := range []struct {
		limited       bool
		pods, evicted int
	}{{true, 2, 0}, {true, 1, 1}, {false, 2, 2}} {
		t.Run(fmt.Sprintf("limited %t, pods %d", tc.limited, tc.pods), func(t *testing.T) {
			t.Parallel()
			c, mode, left := newCluster(t), storagev1.VolumeBindingWaitForFirstConsumer, resource.MustParse("1536Mi")
			storageAPI := c.client.StorageV1()
			_, err := storageAPI.StorageClasses().Create(c.ctx, &storagev1.StorageClass{
				ObjectMeta: metav1.ObjectMeta{Name: "on-node"}, Provisioner: driver, VolumeBindingMode: &mode}, metav1.CreateOptions{})
			if err == nil {
				_, err = storageAPI.CSIDrivers().Create(c.ctx, &storagev1.CSIDriver{
					ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &tc.limited}}, metav1.CreateOptions{})
			}
			if err == nil {
				_, err = storageAPI.CSIStorageCapacities("ml").Create(c.ctx, &storagev1.CSIStorageCapacity{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "left"}, StorageClassName: "on-node", Capacity: &left,
					NodeTopology: &metav1.LabelSelector{}}, metav1.CreateOptions{})
			}
			if err != nil {
				t.Fatal(err)
			}
			c.node(wrappers.MakeNode("n0").GPUs(2)).run().rankedGang("low", 0, 1, 2).wholeOf("low", 2)
			c.groups.Put(wrappers.MakePodGroup("high", "ml").UID("high").Generation(1).MinMember(int32(tc.pods)).Obj())
			for i, p := range members("high", tc.pods) { // 1Gi each
				c.claim(fmt.Sprintf("disk-%d", i))
				c.pod(p.Priority(100).Claim(fmt.Sprintf("disk-%d", i)))
			}
			c.eventually("victims are evicted, or it is said why none is", func() bool {
				f, _ := c.gangs.registry.Facts(key("high"))
				return len(c.evicted()) > 0 || strings.Contains(f.NoHelp, driver)
			})
			c.eventually("all victims are evicted", func() bool { return len(c.evicted()) >= tc.evicted })
			if got := c.evicted(); len(got) != tc.evicted {
				t.Errorf("evicted %v, want %d pods", got, tc.evicted)
			}
		})
	}
}
