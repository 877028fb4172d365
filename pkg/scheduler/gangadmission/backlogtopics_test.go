// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/backlog"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/test/wrappers"
)

// objectEvent is an event of the scheduler's cache.
type objectEvent struct {
	fwk.ClusterEvent
	old, new any
}

// wakesRefused reports whether a gang of one pod, which these filters refused, is tried again after an event: after the
// attempt, or during it.
func wakesRefused(t *testing.T, c *cluster, pod *corev1.Pod, filters []string, claims map[string]*corev1.PersistentVolumeClaim, event objectEvent, during bool) bool {
	t.Helper()
	b, r := backlogOf(c)
	b.AttemptBegins()
	a := backlog.Attempt{
		Classes: []*corev1.Pod{pod}, Pods: []*corev1.Pod{pod}, Task: gangs.Refill, Nodes: c.nodes(),
		VolumeClaim: func(_, name string) *corev1.PersistentVolumeClaim { return claims[name] },
		RefusedBy: func(int) (by kubescheduler.Inputs, counted bool) {
			for _, name := range filters {
				by.Add(kubescheduler.InputsOf(name))
			}
			return by, true
		},
	}
	if during {
		b.Observe(event.ClusterEvent, event.old, event.new)
		return triedAgain(t, b, r, pod, a)
	}
	if triedAgain(t, b, r, pod, a) {
		t.Fatal("tried again without an event")
	}
	b.Observe(event.ClusterEvent, event.old, event.new)
	return len(b.Evaluate(klog.Background()).Gangs.Activate) > 0
}

// randomObjects makes waiting pods, and events of what they may wait for.
type randomObjects struct{ *rand.Rand }

func (r randomObjects) pick(of ...string) string { return of[r.Intn(len(of))] }

func (r randomObjects) pod(name, namespace string) *corev1.Pod {
	w := wrappers.MakePod(name, namespace).UID(name)
	return w.Spec(func(s *corev1.PodSpec) {
		for range r.Intn(3) {
			s.Containers[0].Ports = append(s.Containers[0].Ports, corev1.ContainerPort{
				HostIP: r.pick("", "0.0.0.0", "10.0.0.1", "10.0.0.2"), Protocol: corev1.Protocol(r.pick("", "TCP", "UDP")), HostPort: int32(r.Intn(3)),
			})
		}
		for i := range r.Intn(3) {
			v := corev1.Volume{Name: fmt.Sprint("v", i)}
			switch r.Intn(4) {
			case 0:
				v.EmptyDir = &corev1.EmptyDirVolumeSource{}
			case 1:
				v.GCEPersistentDisk = &corev1.GCEPersistentDiskVolumeSource{PDName: r.pick("d0", "d1")}
			case 2:
				v.Ephemeral = &corev1.EphemeralVolumeSource{}
			default:
				v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: r.claim()}
			}
			s.Volumes = append(s.Volumes, v)
		}
		for i := range r.Intn(3) {
			claim := r.pick("c0", "c1", "c2")
			s.ResourceClaims = append(s.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprint("d", i), ResourceClaimName: &claim})
		}
	}).Obj()
}

// claim returns the name of a claim: one that is bound, one that is not, one that does not exist, or one of an
// ephemeral volume.
func (r randomObjects) claim() string { return r.pick("bound", "unbound", "missing", "a-0-v0") }

func knownClaims() map[string]*corev1.PersistentVolumeClaim {
	fast := "fast"
	return map[string]*corev1.PersistentVolumeClaim{
		"bound":   {Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv0", StorageClassName: &fast}},
		"unbound": {Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &fast}},
		"a-0-v0":  {Spec: corev1.PersistentVolumeClaimSpec{}},
	}
}

func (r randomObjects) event() objectEvent {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: r.pick("ml", "ml", "other"), Name: name}
	}
	changed := func(of fwk.EventResource, old, updated any) objectEvent {
		if r.Intn(2) == 0 {
			return objectEvent{fwk.ClusterEvent{Resource: of, ActionType: fwk.Add}, nil, updated}
		}
		return objectEvent{fwk.ClusterEvent{Resource: of, ActionType: fwk.Update}, old, updated}
	}
	switch r.Intn(8) {
	case 0, 1:
		pod := r.pod("gone", r.pick("ml", "other"))
		pod.Spec.NodeName = "n0"
		return objectEvent{fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}, pod, nil}
	case 2:
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta(r.claim())}
		return changed(fwk.PersistentVolumeClaim, claim, claim)
	case 3:
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: r.pick("pv0", "pv1")}, Spec: corev1.PersistentVolumeSpec{StorageClassName: r.pick("", "fast", "slow")}}
		if r.Intn(2) == 0 {
			volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: r.pick("ml", "other"), Name: r.claim()}
		}
		return changed(fwk.PersistentVolume, volume, volume)
	case 4:
		capacity := func() *storagev1.CSIStorageCapacity {
			c := &storagev1.CSIStorageCapacity{ObjectMeta: meta("c")}
			if r.Intn(3) > 0 {
				c.Capacity = resource.NewQuantity(int64(r.Intn(3)), resource.BinarySI)
			}
			if r.Intn(3) == 0 {
				c.MaximumVolumeSize = resource.NewQuantity(int64(r.Intn(3)), resource.BinarySI)
			}
			return c
		}
		return changed(fwk.CSIStorageCapacity, capacity(), capacity())
	case 5, 6:
		claim := func() *resourcev1.ResourceClaim {
			c := &resourcev1.ResourceClaim{}
			if r.Intn(2) == 0 {
				c.Status.Allocation = &resourcev1.AllocationResult{}
			}
			return c
		}
		old, updated := claim(), claim()
		updated.ObjectMeta = meta(r.pick("c0", "c1", "c2"))
		updated.UID = types.UID(updated.Namespace + updated.Name)
		old.ObjectMeta = updated.ObjectMeta
		return changed(fwk.ResourceClaim, old, updated)
	}
	switch r.Intn(5) {
	case 0:
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}
		return changed(fwk.StorageClass, class, class)
	case 1:
		node := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}
		return changed(fwk.CSINode, node, node)
	case 2:
		return objectEvent{fwk.ClusterEvent{Resource: fwk.VolumeAttachment, ActionType: fwk.Delete}, &storagev1.VolumeAttachment{}, nil}
	case 3:
		return changed(fwk.ResourceSlice, &resourcev1.ResourceSlice{}, &resourcev1.ResourceSlice{})
	}
	return changed(fwk.DeviceClass, &resourcev1.DeviceClass{}, &resourcev1.DeviceClass{})
}

// mayHelp reports whether a volume may help a pod: it is that of one of its claims, or such a claim could be bound to
// it.
func mayHelp(volume *corev1.PersistentVolume, pod *corev1.Pod, claims map[string]*corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		name := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = pod.Name + "-" + v.Name
		default:
			return false
		}
		if ref := volume.Spec.ClaimRef; ref != nil && ref.Namespace == pod.Namespace && ref.Name == name {
			return true
		}
		claim := claims[name]
		if claim == nil {
			return false
		}
		if claim.Spec.VolumeName != "" {
			return claim.Spec.VolumeName == volume.Name
		}
		class := ""
		if claim.Spec.StorageClassName != nil {
			class = *claim.Spec.StorageClassName
		}
		return volume.Spec.ClaimRef == nil && volume.Spec.StorageClassName == class
	})
}

// TestEventsOfObjectsWakeTheGangsThatTheyMayHelp compares random events with the queueing hints of the stock filters
// that refused a gang. If one of them wants the pod to be tried, the gang is. If none does, it is not, unless the event
// is of a kind that is not told apart. The stock hints want pods to be tried after any event of a PersistentVolume,
// even if it belongs to another claim; gangs are tried only if it may help.
func TestEventsOfObjectsWakeTheGangsThatTheyMayHelp(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8))
	for _, name := range []string{"c0", "c1", "c2"} {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("ml" + name)}}
		if _, err := c.client.ResourceV1().ResourceClaims("ml").Create(c.ctx, claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f := c.sched.Profiles[wrappers.SchedulerName]
	c.eventually("the claims seen", func() bool {
		claims, err := f.SharedDRAManager().ResourceClaims().List()
		return err == nil && len(claims) == 3
	})
	registered := map[string][]fwk.ClusterEventWithHint{}
	for _, plugin := range f.EnqueueExtensions() {
		events, err := plugin.EventsToRegister(c.ctx)
		if err != nil {
			t.Fatal(err)
		}
		registered[plugin.Name()] = events
	}
	filters := []string{"NodePorts", "VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits", "DynamicResources"}
	notApart := []fwk.EventResource{fwk.StorageClass, fwk.CSINode, fwk.VolumeAttachment, fwk.ResourceSlice, fwk.DeviceClass, fwk.CSIStorageCapacity}
	claims := knownClaims()
	woken, slept := map[fwk.EventResource]int{}, map[fwk.EventResource]int{}
	for seed := range 3000 {
		r := randomObjects{rand.New(rand.NewSource(int64(seed)))}
		pod, event := r.pod("a-0", "ml"), r.event()
		pod.Annotations = wrappers.MakePod("a-0", "ml").Gang("a").Obj().Annotations
		r.Shuffle(len(filters), func(i, k int) { filters[i], filters[k] = filters[k], filters[i] })
		refused := filters[:1+r.Intn(2)]
		want := ""
		for _, filter := range refused {
			for _, e := range registered[filter] {
				if e.Event.Resource != event.Resource || e.Event.ActionType&event.ActionType == 0 || event.Resource == fwk.PersistentVolume {
					continue
				}
				hint := fwk.Queue
				if e.QueueingHintFn != nil {
					var err error
					if hint, err = e.QueueingHintFn(klog.Background(), pod, event.old, event.new); err != nil {
						t.Fatal(err)
					}
				}
				if hint == fwk.Queue {
					want = filter
				}
			}
			if volume, ok := event.new.(*corev1.PersistentVolume); ok && kubescheduler.InputsOf(filter).Volumes && mayHelp(volume, pod, claims) {
				want = filter
			}
		}
		if want != "" && !wakesRefused(t, c, pod, refused, claims, event, true) {
			t.Fatalf("seed %d: refused by %v, %v %s during the attempt is lost", seed, refused, event.Resource, event.Label())
		}
		switch got := wakesRefused(t, c, pod, refused, claims, event, false); {
		case !got && want != "":
			t.Fatalf("seed %d: refused by %v, not tried after %v %s, which may help %s", seed, refused, event.Resource, event.Label(), want)
		case !got:
			slept[event.Resource]++
		case want == "" && !slices.Contains(notApart, event.Resource) && !isOwnClaim(event, pod) && !hasDisk(event.old):
			t.Fatalf("seed %d: refused by %v, tried after %v %s, which helps none", seed, refused, event.Resource, event.Label())
		default:
			woken[event.Resource]++
		}
	}
	for _, of := range []fwk.EventResource{fwk.AssignedPod, fwk.PersistentVolumeClaim, fwk.PersistentVolume, fwk.ResourceClaim, fwk.CSIStorageCapacity} {
		if woken[of] < 10 || slept[of] < 10 {
			t.Errorf("%s: %d events woke a gang, %d did not, want some of both", of, woken[of], slept[of])
		}
	}
}

// isOwnClaim reports whether an event is that of a claim of the pod, of which some updates do not help.
func isOwnClaim(event objectEvent, pod *corev1.Pod) bool {
	switch claim := event.new.(type) {
	case *corev1.PersistentVolumeClaim:
		return claim.Namespace == pod.Namespace && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name || v.Ephemeral != nil && pod.Name+"-"+v.Name == claim.Name
		})
	case *resourcev1.ResourceClaim:
		return claim.Namespace == pod.Namespace && slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool { return *c.ResourceClaimName == claim.Name })
	}
	return false
}

// hasDisk reports whether a removed pod used volumes, which are not compared with those of the waiting pod.
func hasDisk(old any) bool {
	pod, ok := old.(*corev1.Pod)
	return ok && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.GCEPersistentDisk != nil })
}
