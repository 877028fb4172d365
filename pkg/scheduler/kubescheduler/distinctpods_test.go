// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"maps"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/test/wrappers"
)

// distinctPods collects the objects of a cluster, and the pods of a gang, which differ at least by their names.
type distinctPods struct {
	*rand.Rand
	objects []runtime.Object
	nodes   int
	pods    []*wrappers.PodWrapper
	running []*wrappers.PodWrapper
}

func (r *distinctPods) chance(percent int) bool { return r.Intn(100) < percent }

func (r *distinctPods) add(objects ...runtime.Object) { r.objects = append(r.objects, objects...) }

// each calls edit with the name of every pod, waiting or running.
func (r *distinctPods) each(edit func(name string, p *wrappers.PodWrapper)) {
	for _, p := range slices.Concat(r.pods, r.running) {
		edit(p.Obj().Name, p)
	}
}

// byFilter says, for each filter of the default profile, what makes it refuse nodes.
var byFilter = map[string]func(r *distinctPods){
	names.NodeUnschedulable: func(r *distinctPods) { r.add(wrappers.MakeNode("cordoned").GPUs(8).Unschedulable().Obj()) },
	names.NodeName:          func(*distinctPods) {}, // a waiting pod names no node
	names.TaintToleration: func(r *distinctPods) {
		r.add(wrappers.MakeNode("tainted").GPUs(8).Taint("special", "yes").Obj())
		if r.chance(50) {
			r.each(func(_ string, p *wrappers.PodWrapper) { p.Toleration("special") })
		}
	},
	names.NodeAffinity: func(r *distinctPods) {
		r.each(func(_ string, p *wrappers.PodWrapper) { p.NodeSelector("zone", "z0") })
	},
	names.NodeDeclaredFeatures: func(r *distinctPods) {
		able := wrappers.MakeNode("able").GPUs(3).Obj()
		able.Status.DeclaredFeatures = []string{"RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"}
		r.add(able)
		r.each(func(_ string, p *wrappers.PodWrapper) {
			p.Spec(func(s *corev1.PodSpec) {
				switch r.Intn(4) {
				case 0:
					s.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
				case 1:
					s.HostNetwork, s.HostUsers = true, ptr.To(false)
				case 2:
					s.HostNetwork = true
				}
			})
		})
	},
	names.NodePorts: func(r *distinctPods) {
		r.each(func(_ string, p *wrappers.PodWrapper) { p.HostPort(int32(80 + r.Intn(2))) })
	},
	names.NodeResourcesFit: func(r *distinctPods) {
		r.each(func(_ string, p *wrappers.PodWrapper) { p.CPU(strconv.Itoa(1 + r.Intn(60))) })
	},
	names.VolumeRestrictions: func(r *distinctPods) {
		shared := rwop("once")
		r.add(shared...)
		r.each(func(name string, p *wrappers.PodWrapper) {
			switch r.Intn(4) {
			case 0:
				p.Claim("once")
			case 1:
				r.add(rwop("once-" + name)[:2]...)
				p.Claim("once-" + name)
			case 2:
				p.Spec(func(s *corev1.PodSpec) {
					s.Volumes = append(s.Volumes, corev1.Volume{Name: "disk", VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{IQN: "disk"}}})
				})
			}
		})
	},
	names.NodeVolumeLimits: attachedVolumes,
	names.VolumeBinding:    unboundVolumes,
	names.VolumeZone: func(r *distinctPods) {
		for i := range 3 {
			name := fmt.Sprintf("zonal-%d", i)
			r.add(boundClaim(name, "disks.example.com", func(v *corev1.PersistentVolume) {
				v.Labels = map[string]string{corev1.LabelTopologyZone: fmt.Sprintf("z%d", i%2)}
			})...)
		}
		r.each(func(_ string, p *wrappers.PodWrapper) { p.Claim(fmt.Sprintf("zonal-%d", r.Intn(3))) })
	},
	names.PodTopologySpread: func(r *distinctPods) {
		key := []string{"zone", corev1.LabelHostname}[r.Intn(2)]
		r.each(func(_ string, p *wrappers.PodWrapper) { spread(p, key, "a", 1) })
	},
	names.InterPodAffinity: func(r *distinctPods) {
		key := []string{"zone", corev1.LabelHostname}[r.Intn(2)]
		r.each(func(_ string, p *wrappers.PodWrapper) {
			if r.chance(50) {
				p.ApartFrom(key, "app", "a")
			}
		})
	},
	names.DynamicResources: func(r *distinctPods) {
		r.add(deviceClass("d", "d.example.com", ""))
		for i := range r.nodes {
			node := fmt.Sprintf("n%d", i)
			r.add(slice("d.example.com", node, node, deviceNames("d", r.Intn(4))...))
		}
		for _, p := range r.pods {
			own := "devices-" + p.Obj().Name
			r.add(claim(own, resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{exactly("d", 1)}}))
			withClaims(p, own)
		}
	},
}

// attachedVolumes gives the pods volumes of drivers of which some nodes can attach a limited number, which may be zero.
func attachedVolumes(r *distinctPods) {
	drivers := []string{"a.example.com", "b.example.com", "ebs.csi.aws.com"}
	for i := range r.nodes {
		node := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Annotations: map[string]string{corev1.MigratedPluginsAnnotationKey: "kubernetes.io/aws-ebs"}}}
		for _, driver := range drivers {
			if r.chance(70) {
				d := storagev1.CSINodeDriver{Name: driver, NodeID: node.Name}
				if r.chance(80) {
					d.Allocatable = &storagev1.VolumeNodeResources{Count: ptr.To(int32(r.Intn(6)))}
				}
				node.Spec.Drivers = append(node.Spec.Drivers, d)
			}
		}
		if r.chance(85) {
			r.add(node)
		}
	}
	r.add(storageClass("attached", drivers[0], storagev1.VolumeBindingWaitForFirstConsumer))
	r.add(boundClaim("dataset", drivers[0], nil)...)
	if r.chance(50) { // still attached, although no pod uses it
		r.add(boundClaim("left", drivers[0], nil)...)
		r.add(&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "left"}, Spec: storagev1.VolumeAttachmentSpec{
			Attacher: drivers[0], NodeName: "n0", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv-left")}}})
	}
	kinds := []int{r.Intn(6), r.Intn(6)}
	r.each(func(name string, p *wrappers.PodWrapper) {
		switch kinds[r.Intn(2)] {
		case 0:
			r.add(boundClaim("attached-"+name, drivers[0], nil)...)
			p.Claim("attached-" + name)
		case 1:
			for k := range 2 {
				claim := fmt.Sprintf("attached-%s-%d", name, k)
				r.add(boundClaim(claim, drivers[k], nil)...)
				p.Claim(claim)
			}
		case 2:
			r.add(boundClaim("attached-"+name, drivers[0], nil)...)
			p.Claim("attached-" + name).Claim("dataset")
		case 3:
			r.add(ephemeralClaim(p, "attached", "1Gi"))
		case 4:
			p.Spec(func(s *corev1.PodSpec) {
				s.Volumes = append(s.Volumes, corev1.Volume{Name: "ebs", VolumeSource: corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-" + name}}})
			})
		}
	})
}

// unboundVolumes gives the pods claims that are not bound, and volumes for some of them.
func unboundVolumes(r *distinctPods) {
	r.add(storageClass("on-node", "kubernetes.io/no-provisioner", storagev1.VolumeBindingWaitForFirstConsumer), storageClass("late", "a.example.com", storagev1.VolumeBindingWaitForFirstConsumer))
	sizes := []string{"1Gi", "2Gi", "3Gi"}
	zonal := r.chance(25)
	for i := range r.nodes {
		for k := range r.Intn(5) {
			key, value := corev1.LabelHostname, fmt.Sprintf("n%d", i)
			if zonal {
				key, value = "zone", "z0"
			}
			size, tier := sizes[r.Intn(3)], []string{"fast", "slow"}[i%2]
			if zonal { // otherwise which one is taken depends on the order of the list
				size, tier = sizes[1], "fast"
			}
			v := localVolume(fmt.Sprintf("v-%d-%d", i, k), "on-node", size, key, value)
			v.Labels = map[string]string{"tier": tier}
			if r.chance(10) && len(r.pods) > 0 {
				v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ml", Name: "own-" + r.pods[r.Intn(len(r.pods))].Obj().Name}
			}
			r.add(v)
		}
	}
	kinds := []int{r.Intn(4), r.Intn(4)}
	for _, p := range r.pods {
		name, kind := p.Obj().Name, kinds[r.Intn(2)]
		claim := pendingClaim("own-"+name, "on-node", sizes[kind%3])
		switch kind {
		case 1:
			claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "fast"}}
		case 2:
			second := pendingClaim("second-"+name, "on-node", "1Gi")
			r.add(second)
			p.Claim(second.Name)
		case 3:
			claim.Spec.StorageClassName = ptr.To("late")
		}
		r.add(claim)
		p.Claim(claim.Name)
	}
}

func storageClass(name, provisioner string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode}
}

// pendingClaim returns a claim that is not bound.
func pendingClaim(name, class, size string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ml", ResourceVersion: "1"},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
}

// ephemeralClaim adds an ephemeral volume to the pod, and returns the claim that is made for it.
func ephemeralClaim(p *wrappers.PodWrapper, class, size string) *corev1.PersistentVolumeClaim {
	claim := pendingClaim(p.Obj().Name+"-scratch", class, size)
	p.Spec(func(s *corev1.PodSpec) {
		s.Volumes = append(s.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim.Spec}}}})
	})
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Obj().Name, UID: p.Obj().UID, Controller: ptr.To(true)}}
	return claim
}

// boundClaim returns a claim with its volume of a CSI driver.
func boundClaim(name, driver string, edit func(*corev1.PersistentVolume)) []runtime.Object {
	objects := rwop(name)[:2]
	claim, volume := objects[0].(*corev1.PersistentVolumeClaim), objects[1].(*corev1.PersistentVolume)
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}}
	if edit != nil {
		edit(volume)
	}
	return objects
}

// localVolume returns a volume that is not bound, of the nodes with a label.
func localVolume(name, class, size, key, value string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"},
		Spec: corev1.PersistentVolumeSpec{StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/" + name}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}}}}},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
}

// newDistinctPods returns a cluster in which the filters may refuse nodes.
func newDistinctPods(seed int64, filters ...string) *distinctPods {
	r := &distinctPods{Rand: rand.New(rand.NewSource(seed))}
	r.nodes = 2 + r.Intn(4)
	for i := range r.nodes {
		r.add(wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(int64(2+r.Intn(6))).Label("zone", fmt.Sprintf("z%d", i%2)).Label(corev1.LabelTopologyZone, fmt.Sprintf("z%d", i%2)).Obj())
	}
	for i := range 4 + r.Intn(12) {
		r.pods = append(r.pods, wrappers.MakePod(fmt.Sprintf("w%d", i), "ml").UID(fmt.Sprintf("w%d", i)).Label("app", "a").Gang("g").GPUs(1))
	}
	for i := range r.Intn(3) {
		r.running = append(r.running, wrappers.MakePod(fmt.Sprintf("r%d", i), "ml").UID(fmt.Sprintf("r%d", i)).Label("app", "b").Node(fmt.Sprintf("n%d", r.Intn(r.nodes))))
	}
	for _, filter := range filters {
		byFilter[filter](r)
	}
	for _, p := range r.running {
		r.add(p.Obj())
	}
	return r
}

// TestDistinctPodsArePlannedAsByRealCycles: a class stands for pods that differ by their names, and by the names of
// their claims. A plan takes another of them if and only if the stock filters take it, in a cluster in which the pods
// before are really assumed.
func TestDistinctPodsArePlannedAsByRealCycles(t *testing.T) {
	t.Parallel()
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("ROUNDS")); err == nil && n > 0 {
		rounds *= n
	}
	filters := namesOf(newCluster(t).f.ListPlugins().Filter)
	slices.Sort(filters)
	if known := slices.Sorted(maps.Keys(byFilter)); !slices.Equal(known, filters) {
		t.Fatalf("the filters of the default profile are\n%v, this test knows\n%v", filters, known)
	}
	for k, filter := range filters {
		other := filters[(k+3)%len(filters)]
		for seed := range rounds {
			t.Run(fmt.Sprintf("%s/%d", filter, seed), func(t *testing.T) {
				t.Parallel()
				checkDistinctPods(t, newDistinctPods(int64(seed), filter))
			})
			t.Run(fmt.Sprintf("%s and %s/%d", filter, other, seed), func(t *testing.T) {
				t.Parallel()
				checkDistinctPods(t, newDistinctPods(int64(seed), filter, other))
			})
		}
	}
}

// checkDistinctPods plans the pods one by one, and compares each verdict with those of real cycles.
func checkDistinctPods(t *testing.T, r *distinctPods) {
	t.Helper()
	c, real := newCluster(t, r.objects...), newCluster(t, r.objects...)
	var pods []*corev1.Pod
	for _, p := range r.pods {
		pods = append(pods, p.Obj())
	}
	w, classes, _ := c.classWorld(pods)
	waiting := map[int][]*corev1.Pod{}
	for i, pod := range pods {
		waiting[classes.Of[i]] = append(waiting[classes.Of[i]], pod)
	}
	capacity := make([]int, len(classes.Pods))
	for i := range capacity {
		capacity[i] = w.Capacity(i).Pods
	}
	var steps []string
	for range 2 * len(pods) {
		i := r.Intn(len(classes.Pods))
		if len(waiting[i]) == 0 {
			continue
		}
		pod := waiting[i][0]
		want := real.realCycles(pod)
		node, ok := w.Place(i, "")
		possible := slices.Contains(slices.Collect(maps.Values(want)), "")
		if ok != possible || ok && want[node] != "" {
			t.Fatalf("%s of class %d %s: planned on %q, real cycles say %v\nafter %v", pod.Name, i, describePod(pod), node, want, steps)
		}
		if !ok {
			continue
		}
		steps = append(steps, pod.Name+" -> "+node)
		if capacity[i]--; capacity[i] < 0 && w.Kind(i) == independent {
			t.Fatalf("class %d %s: more pods are planned than Capacity says\nafter %v", i, describePod(pod), steps)
		}
		waiting[i] = waiting[i][1:]
		real.assume(pod, node)
	}
}

// assume runs the pod's real cycle on a node up to Reserve, and adds it to the cache.
func (c *cluster) assume(pod *corev1.Pod, node string) {
	c.t.Helper()
	k := slices.IndexFunc(c.nodes, func(n fwk.NodeInfo) bool { return n.Node().Name == node })
	if _, why := c.reserve(pod, c.nodes[k]); why != "" {
		c.t.Fatalf("real cycle of %s on %s: %s", pod.Name, node, why)
	}
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = node
	if err := c.sched.Cache.AddPod(klog.FromContext(c.ctx), assumed); err != nil {
		c.t.Fatal(err)
	}
	c.refresh()
}
