// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sort"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/storage/ephemeral"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// Filters judge one pod beside those that are there. The pods of a class have claims of their own that differ only by
// name, so a plan counts two things itself: how many different volumes a node can attach, which NodeVolumeLimits is
// asked about all planned pods of the node at once, and which existing volumes are left for claims that nothing else
// can satisfy.

// VolumeClaimName returns the name of the PersistentVolumeClaim of a volume, "" if it has none.
func VolumeClaimName(pod *corev1.Pod, volume *corev1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		return ephemeral.VolumeClaimName(pod, volume)
	}
	return ""
}

// volumeClaimNames returns the names of the PersistentVolumeClaims of a pod.
func volumeClaimNames(pod *corev1.Pod) []string {
	var out []string
	for i := range pod.Spec.Volumes {
		if name := VolumeClaimName(pod, &pod.Spec.Volumes[i]); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// claimsByName returns which claims of the pods must be identified by their names: those that more than one of the pods
// uses, that a pod on a node uses, and for which a volume is meant.
func claimsByName(f framework.Framework, pods []*corev1.Pod) (shared, byName sets.Set[string]) {
	shared = namesUsedTwice(pods, volumeClaimNames)
	byName = shared.Clone()
	if len(pods) == 0 {
		return shared, byName
	}
	namespace := pods[0].Namespace
	used := f.SnapshotSharedLister().StorageInfos()
	for _, pod := range pods {
		for _, name := range volumeClaimNames(pod) {
			if used.IsPVCUsedByPods(framework.GetNamespacedName(namespace, name)) {
				byName.Insert(name)
			}
		}
	}
	for _, volume := range volumesWhere(f, func(v *corev1.PersistentVolume) bool { return v.Status.Phase != corev1.VolumeBound }) {
		if claim := volume.Spec.ClaimRef; claim != nil && claim.Namespace == namespace {
			byName.Insert(claim.Name)
		}
	}
	return shared, byName
}

// withoutClaim returns the first of the pods that has a PersistentVolumeClaim that does not exist, nil if all exist.
func (w *Snapshot) withoutClaim(pods []*corev1.Pod) *corev1.Pod {
	i := slices.IndexFunc(pods, func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(volumeClaimNames(pod), func(name string) bool { return w.VolumeClaim(pod.Namespace, name) == nil })
	})
	if i < 0 {
		return nil
	}
	return pods[i]
}

// namesUsedTwice returns the names that more than one of the pods uses.
func namesUsedTwice(pods []*corev1.Pod, namesOf func(*corev1.Pod) []string) sets.Set[string] {
	used, shared := sets.New[string](), sets.New[string]()
	for _, pod := range pods {
		for _, name := range namesOf(pod) {
			if used.Has(name) {
				shared.Insert(name)
			}
			used.Insert(name)
		}
	}
	return shared
}

func volumesWhere(f framework.Framework, meets func(*corev1.PersistentVolume) bool) []*corev1.PersistentVolume {
	all, err := f.SharedInformerFactory().Core().V1().PersistentVolumes().Lister().List(labels.Everything())
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(v *corev1.PersistentVolume) bool { return !meets(v) })
}

// claimsOf describes the pod's persistent volume claims as far as the filters distinguish them. byName are the claims
// that must be identified by their names.
func claimsOf(f framework.Framework, pod *corev1.Pod, byName sets.Set[string]) string {
	out := ""
	for _, name := range volumeClaimNames(pod) {
		if byName.Has(name) {
			out += "claim " + name + "\n"
			continue
		}
		out += claimKey(f, pod, name) + "\n"
	}
	return out
}

func claimKey(f framework.Framework, pod *corev1.Pod, name string) string {
	core := f.SharedInformerFactory().Core().V1()
	claim, err := core.PersistentVolumeClaims().Lister().PersistentVolumeClaims(pod.Namespace).Get(name)
	switch {
	case err != nil:
		return "no claim"
	case isForeign(pod, claim):
		return "claim " + name
	case claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil:
		return "unbound " + claim.Annotations[storagehelpers.AnnSelectedNode] + " " + claimSpecKey(claim)
	case claim.DeletionTimestamp != nil, claim.Status.Phase != corev1.ClaimBound,
		!metav1.HasAnnotation(claim.ObjectMeta, storagehelpers.AnnBindCompleted):
		return "claim " + name
	}
	volume, err := core.PersistentVolumes().Lister().Get(claim.Spec.VolumeName)
	if err != nil || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != claim.UID {
		return "claim " + name
	}
	// VolumeBinding reads the node affinity, VolumeZone the labels, NodeVolumeLimits the driver.
	source := volume.Spec.PersistentVolumeSource
	driver := ""
	if source.CSI != nil {
		driver = source.CSI.Driver
		source = corev1.PersistentVolumeSource{}
	}
	if local := source.Local != nil || source.HostPath != nil; local {
		source = corev1.PersistentVolumeSource{}
	}
	key, err := json.Marshal(struct {
		Class    string
		Driver   string
		Source   corev1.PersistentVolumeSource // of an in-tree driver
		Affinity *corev1.VolumeNodeAffinity
		Labels   map[string]string
	}{volume.Spec.StorageClassName, driver, source, volume.Spec.NodeAffinity, volume.Labels})
	if err != nil {
		return "claim " + name
	}
	return "volume " + string(key)
}

// isForeign reports whether a claim has the name of one that is made for a volume of the pod, and was not made for it.
func isForeign(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Ephemeral != nil && VolumeClaimName(pod, &v) == claim.Name && ephemeral.VolumeIsForPod(pod, claim) != nil
	})
}

// claimSpecKey is equal for claims that the same volumes can satisfy.
func claimSpecKey(claim *corev1.PersistentVolumeClaim) string {
	spec := claim.Spec
	spec.VolumeName = ""
	class := storagehelpers.GetPersistentVolumeClaimClass(claim)
	spec.StorageClassName = &class
	key, err := json.Marshal(spec)
	if err != nil {
		return "claim " + claim.Name
	}
	return string(key)
}

// volumesAsked describes what the PersistentVolumeClaims of a pod ask for.
func volumesAsked(f framework.Framework, pod *corev1.Pod) string {
	claims, asked := f.SharedInformerFactory().Core().V1().PersistentVolumeClaims().Lister().PersistentVolumeClaims(pod.Namespace), ""
	for _, name := range volumeClaimNames(pod) {
		if claim, err := claims.Get(name); err == nil {
			asked += claimSpecKey(claim) + "\n"
		} else {
			asked += "claim " + name + "\n"
		}
	}
	return asked
}

// volumeDemand is what the pods of a class need of volumes.
type volumeDemand struct {
	// attached are the volumes of the pods of the class, those of ephemeral claims by the name of the claim. ends is,
	// by pod, how many the first pods have up to it.
	attached []corev1.Volume
	ends     []int
	// awaited are the claims of a pod's own that only an existing volume can satisfy, the smallest first.
	awaited []*corev1.PersistentVolumeClaim
	room    map[int]volumeRoom // by node, as far as asked
}

// volumeRoom is for how many pods of a class a node has volumes, and why not for as many as it has other room for.
type volumeRoom struct {
	pods int
	why  string
}

// readVolumeDemand determines what volumes the pods of the class need. It is called after PreFilter. members are pods
// of the class.
func (w *Snapshot) readVolumeDemand(c *class, members []*corev1.Pod) {
	pod, d := c.info.Pod, &volumeDemand{room: map[int]volumeRoom{}}
	own := sets.New[string]()
	for _, name := range volumeClaimNames(pod) {
		isShared := w.sharedVolumes == nil || w.sharedVolumes.Has(name)
		if !isShared {
			own.Insert(name)
		}
		claim := w.VolumeClaim(pod.Namespace, name)
		if claim == nil {
			continue // VolumeBinding refuses the pod and reports the reason
		}
		if isShared && slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
			c.exclusive = append(c.exclusive, pod.Namespace+"/"+name)
		}
		if claim.Spec.VolumeName != "" {
			continue
		}
		c.awaitsVolumes = true
		switch {
		case isShared:
			c.unbound = append(c.unbound, unboundVolume+pod.Namespace+"/"+name)
		case !w.isProvisioned(claim):
			d.awaited = append(d.awaited, claim)
		default:
			c.limited = cmp.Or(c.limited, w.limitedDriver(claim))
		}
	}
	sort.SliceStable(d.awaited, func(a, b int) bool { return sizeOfClaim(d.awaited[a]) < sizeOfClaim(d.awaited[b]) })
	// Of the planned pod, filters see what all pods of the class have in common.
	c.planned.Pod.Spec.Volumes = slices.DeleteFunc(c.planned.Pod.Spec.Volumes, func(v corev1.Volume) bool { return own.Has(VolumeClaimName(pod, &v)) })
	if c.refuse != nil {
		return
	}
	if c.skip.Has(names.VolumeBinding) || !w.cache.enabledPlugins(names.VolumeBinding) {
		d.awaited = nil
	}
	if !c.skip.Has(names.NodeVolumeLimits) && w.cache.enabledPlugins(names.NodeVolumeLimits) {
		for _, member := range members {
			d.attached = append(d.attached, volumesByClaim(member)...)
			d.ends = append(d.ends, len(d.attached))
		}
	}
	if len(d.attached)+len(d.awaited) > 0 {
		c.volumes = d
	}
}

func sizeOfClaim(claim *corev1.PersistentVolumeClaim) int64 {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return size.Value()
}

// attachedOf returns the volumes of the first pods of the class.
func (d *volumeDemand) attachedOf(pods int) []corev1.Volume {
	if pods = min(pods, len(d.ends)); pods == 0 {
		return nil
	}
	return d.attached[:d.ends[pods-1]:d.ends[pods-1]]
}

// volumesByClaim returns the volumes of a pod, those of ephemeral claims by the name of the claim: that the pod owns it
// is known.
func volumesByClaim(pod *corev1.Pod) []corev1.Volume {
	out := slices.Clone(pod.Spec.Volumes)
	for i := range out {
		if out[i].Ephemeral != nil {
			claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: VolumeClaimName(pod, &out[i])}
			out[i].VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: claim}
		}
	}
	return out
}

// isProvisioned reports whether a volume can be made for the claim.
func (w *Snapshot) isProvisioned(claim *corev1.PersistentVolumeClaim) bool {
	class, err := w.f.SharedInformerFactory().Storage().V1().StorageClasses().Lister().Get(storagehelpers.GetPersistentVolumeClaimClass(claim))
	return err == nil && class.Provisioner != "" && class.Provisioner != storagehelpers.NotSupportedProvisioner
}

// limitedDriver returns the CSI driver that makes a volume for the claim, if it tells how much storage is left. "": it
// does not.
func (w *Snapshot) limitedDriver(claim *corev1.PersistentVolumeClaim) string {
	storage := w.f.SharedInformerFactory().Storage().V1()
	class, err := storage.StorageClasses().Lister().Get(storagehelpers.GetPersistentVolumeClaimClass(claim))
	if err != nil {
		return ""
	}
	driver, err := storage.CSIDrivers().Lister().Get(class.Provisioner)
	if err != nil || driver.Spec.StorageCapacity == nil || !*driver.Spec.StorageCapacity {
		return ""
	}
	return driver.Name
}

// WhyStorageIsUnknown returns why the Snapshot cannot tell whether there is enough storage for several pods, "" if it
// can: VolumeBinding compares what is left with one claim at a time.
func (w *Snapshot) WhyStorageIsUnknown() string {
	for _, c := range w.classes {
		if c.limited != "" {
			return "volumes for pods of the gang are made by " + c.limited + ", and it is not known whether it has storage for all of them"
		}
	}
	return ""
}

// volumeRoom returns for how many pods of the class the node has volumes, at most as many as it has other room for,
// without planned pods. It is an upper bound.
func (w *Snapshot) volumeRoom(c *class, i int) volumeRoom {
	most := int(c.known.slots[i])
	if c.volumes == nil || most == 0 {
		return volumeRoom{pods: most}
	}
	if room, known := c.volumes.room[i]; known {
		return room
	}
	room := volumeRoom{pods: most}
	if why := w.whyNotAttached(c, i, map[*class]int{c: most}); why != "" {
		c.refusedBy.Insert(names.NodeVolumeLimits)
		room = volumeRoom{why: why, pods: sort.Search(most-1, func(n int) bool { // the first number to which no pod can be added
			return w.whyNotAttached(c, i, map[*class]int{c: n + 1}) != ""
		})}
	}
	if len(c.volumes.awaited) > 0 {
		candidates := 0
		for _, claim := range c.volumes.awaited {
			candidates += len(w.volumesOn(storagehelpers.GetPersistentVolumeClaimClass(claim), i))
		}
		taken := map[string]*corev1.PersistentVolume{}
		for n := range room.pods {
			if n*candidates > maxMatched {
				break
			}
			chosen, ok := w.matchVolumes(c, i, taken)
			if !ok {
				room = volumeRoom{n, noVolume}
				break
			}
			addVolumes(taken, chosen)
		}
	}
	c.volumes.room[i] = room
	return room
}

// maxMatched bounds the volumes that are compared to count those of one node. A node with more, which it shares with
// others, counts with all of its room.
const maxMatched = 1024

// noVolume is the reason of VolumeBinding for a node without a volume for a claim.
const noVolume = "node(s) didn't find available persistent volumes to bind"

// volumeConflict returns the reason why the node has no volumes for another pod of the class beside the planned pods,
// "" if it has. The filters have accepted the pod without the planned ones.
func (w *Snapshot) volumeConflict(c *class, i int) string {
	if c.volumes == nil {
		return ""
	}
	if len(c.volumes.attached) > 0 && len(w.nodes.planned[i].pods) > 0 {
		pods := map[*class]int{c: 1}
		for _, info := range w.nodes.planned[i].pods {
			if of := w.classOfPlanned(info); of.volumes != nil {
				pods[of]++
			}
		}
		if why := w.whyNotAttached(c, i, pods); why != "" {
			c.refusedBy.Insert(names.NodeVolumeLimits)
			return why
		}
	}
	if len(c.volumes.awaited) > 0 && len(w.existing.taken) > 0 {
		if _, ok := w.matchVolumes(c, i, w.existing.taken); !ok {
			c.refusedBy.Insert(names.VolumeBinding)
			return noVolume
		}
	}
	return ""
}

// classOfPlanned returns the class of a planned pod.
func (w *Snapshot) classOfPlanned(info *framework.PodInfo) *class {
	return w.classes[slices.IndexFunc(w.classes, func(c *class) bool { return c.planned == info })]
}

// whyNotAttached returns why the node cannot attach the volumes of so many pods of the classes beside its running pods,
// "" if it can. NodeVolumeLimits is asked about a pod that has the volumes of all of them.
func (w *Snapshot) whyNotAttached(c *class, i int, pods map[*class]int) string {
	node, err := w.f.SharedCSIManager().CSINodes().Get(w.nodes.objects[i].Name)
	if err != nil {
		return "" // without limits
	}
	limited := false
	for _, d := range node.Spec.Drivers {
		limited = limited || d.Allocatable != nil && d.Allocatable.Count != nil
	}
	if !limited {
		return ""
	}
	all := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.info.Pod.Namespace, Name: c.info.Pod.Name}}
	for of, n := range pods {
		if volumes := of.volumes.attachedOf(n); len(all.Spec.Volumes) == 0 {
			all.Spec.Volumes = volumes
		} else {
			all.Spec.Volumes = append(all.Spec.Volumes, volumes...)
		}
	}
	c.state.SetSkipFilterPlugins(w.existing.notLimits)
	defer c.state.SetSkipFilterPlugins(c.skip)
	if status := w.f.RunFilterPlugins(w.ctx, c.state, all, w.nodes.currentNode(i)); !status.IsSuccess() {
		return firstReason(status)
	}
	return ""
}

// existingVolumes are the volumes that are not bound.
type existingVolumes struct {
	attributes bool                                // the feature VolumeAttributesClass
	notLimits  sets.Set[string]                    // the filters other than NodeVolumeLimits
	byClass    map[string]*volumesByNode           // by StorageClass; created at first use
	taken      map[string]*corev1.PersistentVolume // those of planned pods
	planned    [][]*corev1.PersistentVolume        // a stack: those of each planned pod with awaited claims
}

func newExistingVolumes(filters []string) existingVolumes {
	return existingVolumes{
		notLimits:  sets.New(filters...).Delete(names.NodeVolumeLimits),
		attributes: feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate).EnableVolumeAttributesClass,
		byClass:    map[string]*volumesByNode{}, taken: map[string]*corev1.PersistentVolume{},
	}
}

// volumesByNode are volumes by the position of the node that they belong to, and those that may belong to any node.
type volumesByNode struct {
	of     map[int32][]*corev1.PersistentVolume
	others []*corev1.PersistentVolume
}

// volumesOn returns the volumes of the StorageClass that the node may have.
func (w *Snapshot) volumesOn(class string, i int) []*corev1.PersistentVolume {
	by := w.existing.byClass[class]
	if by == nil {
		by = &volumesByNode{of: map[int32][]*corev1.PersistentVolume{}}
		for _, v := range volumesWhere(w.f, func(v *corev1.PersistentVolume) bool {
			return storagehelpers.GetPersistentVolumeClass(v) == class && v.Status.Phase != corev1.VolumeBound
		}) {
			nodes, narrow := w.nodesOfVolume(v)
			if narrow && isOneLabel(v) { // the costliest check of FindMatchingVolume
				v = &corev1.PersistentVolume{TypeMeta: v.TypeMeta, ObjectMeta: v.ObjectMeta, Spec: v.Spec, Status: v.Status}
				v.Spec.NodeAffinity = nil
			}
			for _, n := range nodes {
				by.of[n] = append(by.of[n], v)
			}
			if !narrow {
				by.others = append(by.others, v)
			}
		}
		w.existing.byClass[class] = by
	}
	if len(by.others) == 0 {
		return by.of[int32(i)]
	}
	return slices.Concat(by.of[int32(i)], by.others)
}

// nodesOfVolume returns nodes that the volume is at most available on, false if any node may have it.
func (w *Snapshot) nodesOfVolume(v *corev1.PersistentVolume) ([]int32, bool) {
	affinity := v.Spec.NodeAffinity
	if affinity == nil || affinity.Required == nil || len(affinity.Required.NodeSelectorTerms) != 1 {
		return nil, false
	}
	for _, e := range affinity.Required.NodeSelectorTerms[0].MatchExpressions {
		if e.Operator != corev1.NodeSelectorOpIn {
			continue
		}
		top, nodes := w.nodes.topologyOf(e.Key), []int32(nil)
		for _, value := range sets.List(sets.New(e.Values...)) {
			if k, ok := top.number[value]; ok {
				nodes = append(nodes, top.nodes[k]...)
			}
		}
		return nodes, true
	}
	return nil, false
}

// isOneLabel reports whether the volume, of which nodesOfVolume knows the nodes, is available on all of them.
func isOneLabel(v *corev1.PersistentVolume) bool {
	term := &v.Spec.NodeAffinity.Required.NodeSelectorTerms[0]
	return len(term.MatchExpressions) == 1 && len(term.MatchFields) == 0
}

// matchVolumes returns the volumes that the next pod of the class would have on the node, beside those that are taken.
// It returns false if one is missing.
func (w *Snapshot) matchVolumes(c *class, i int, taken map[string]*corev1.PersistentVolume) ([]*corev1.PersistentVolume, bool) {
	excluded := taken
	if len(c.volumes.awaited) > 1 {
		excluded = maps.Clone(taken)
	}
	var chosen []*corev1.PersistentVolume
	for _, claim := range c.volumes.awaited {
		list := w.volumesOn(storagehelpers.GetPersistentVolumeClaimClass(claim), i)
		v, err := storagehelpers.FindMatchingVolume(claim, list, w.nodes.objects[i], excluded, true, w.existing.attributes)
		if err != nil || v == nil {
			return nil, false
		}
		if chosen = append(chosen, v); len(c.volumes.awaited) > 1 {
			excluded[v.Name] = v
		}
	}
	return chosen, true
}

func addVolumes(taken map[string]*corev1.PersistentVolume, volumes []*corev1.PersistentVolume) {
	for _, v := range volumes {
		taken[v.Name] = v
	}
}

// takeVolumes records that the next planned pod of the class has its volumes.
func (w *Snapshot) takeVolumes(c *class, i int) {
	if c.volumes == nil || len(c.volumes.awaited) == 0 {
		return
	}
	chosen, _ := w.matchVolumes(c, i, w.existing.taken) // the filter may know of a volume that the informer has not shown yet
	addVolumes(w.existing.taken, chosen)
	w.existing.planned = append(w.existing.planned, chosen)
}

// giveBackVolumes reverses takeVolumes for the last planned pod, which is of the class.
func (w *Snapshot) giveBackVolumes(c *class) {
	if c.volumes == nil || len(c.volumes.awaited) == 0 {
		return
	}
	last := len(w.existing.planned) - 1
	for _, v := range w.existing.planned[last] {
		delete(w.existing.taken, v.Name)
	}
	w.existing.planned = w.existing.planned[:last]
}
