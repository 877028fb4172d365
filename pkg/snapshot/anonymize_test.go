// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/test/wrappers"
)

// secretive is a snapshot in which each text of its owner contains "secret".
func secretive() *Snapshot {
	node := wrappers.MakeNode("secret-node-1").GPUs(8).Label(corev1.LabelHostname, "secret-node-1").Label("secret.example.com/rack", "secret-r1").
		Label(corev1.LabelTopologyZone, "secret-zone").Taint("secret-dedicated", "secret-team").Obj()
	pod := wrappers.MakePod("secret-train-7", "secret-ns").UID("secret-uid").Gang("secret-train").SubGroup("secret-leaf").GPUs(1).Node("secret-node-1").
		Annotation("secret.example.com/note", "a secret").Annotation(v2alpha2.MinMemberKey, "all").Controller("Job", "secret-train", "secret-job-uid").Obj()
	pod.Labels["secret-key"] = "secret-value"
	pod.Spec.Containers[0].Image = "registry.secret.example.com/secret:1.2.3"
	pod.Spec.NodeSelector = map[string]string{"secret.example.com/rack": "secret-r1"}
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"secret-key": "secret-value"}}}}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, Reason: "Scheduled", Message: "on secret-node-1"}}
	group := wrappers.MakePodGroup("secret-train", "secret-ns").UID("secret-group-uid").SubGroup("secret-leaf", 1).Spec(func(spec *v2alpha2.PodGroupSpec) {
		spec.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "secret.example.com/rack"}
	}).Obj()
	group.Status.Placement = "secret-zone/secret-r1"
	return &Snapshot{
		Taken: example().Taken, Unread: []Unread{{Resource: "jobs.batch", Why: "dial tcp secret.example.com", Without: "names of Jobs"}},
		Objects: []runtime.Object{node, pod, group},
	}
}

func unzipped(t *testing.T, s *Snapshot) string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(written(t, s)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// No text of the owner is in the file, and what named an object names it still.
func TestAnonymize(t *testing.T) {
	t.Parallel()
	s, old := secretive(), secretive()
	s.Anonymize([32]byte{1})
	text := unzipped(t, s)
	for _, word := range []string{"secret", "example", "registry", "dedicated", "a secret", "1.2.3"} {
		if strings.Contains(text, word) {
			t.Errorf("the file has %q:\n%s", word, text)
		}
	}
	node, pod, group := s.Objects[0].(*corev1.Node), s.Objects[1].(*corev1.Pod), s.Objects[2].(*v2alpha2.PodGroup)
	if pod.Spec.NodeName != node.Name || node.Labels[corev1.LabelHostname] != node.Name || pod.Namespace != group.Namespace || membership.Group(pod) != group.Name ||
		membership.Leaf(pod) != group.Spec.SubGroups[0].Name || !strings.HasSuffix(pod.Name, "-7") || pod.Name != pod.OwnerReferences[0].Name+"-7" {
		t.Errorf("references do not hold any more:\n%s", text)
	}
	rack := group.Spec.TopologyConstraint.RequiredTopologyLevel
	if value := node.Labels[rack]; value == "" || pod.Spec.NodeSelector[rack] != value || group.Status.Placement != node.Labels[corev1.LabelTopologyZone]+"/"+value {
		t.Errorf("the level %q does not hold any more:\n%s", rack, text)
	}
	if len(pod.Annotations) != 2 || pod.Annotations[v2alpha2.MinMemberKey] != "all" || pod.Status.Conditions[0].Message != "" || pod.Status.Conditions[0].Reason != "Scheduled" ||
		node.Status.Allocatable["nvidia.com/gpu"] != old.Objects[0].(*corev1.Node).Status.Allocatable["nvidia.com/gpu"] {
		t.Errorf("what has to stay does not:\n%s", text)
	}
	if diff := cmp.Diff(old, secretive()); diff != "" {
		t.Errorf("the objects that were given have changed:\n%s", diff)
	}
	again, other := secretive(), secretive()
	again.Anonymize([32]byte{1})
	other.Anonymize([32]byte{2})
	if unzipped(t, again) != text || unzipped(t, other) == text {
		t.Error("the texts do not depend on the key alone")
	}
}

// Names of ports and letters beyond ASCII are texts of the owner too. The version of a device stays: an expression that
// compares it fails about a word.
func TestAnonymizeOfOtherTexts(t *testing.T) {
	t.Parallel()
	s := &Snapshot{Objects: []runtime.Object{
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
			{Port: 80, TargetPort: intstr.FromString("secret-port")}, {Port: 81, TargetPort: intstr.FromInt32(8080)}}}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "/kunden/m\u00fcller-\u79d8\u5bc6"}}}},
		&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice"}, Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", Devices: []resourcev1.Device{{
			Name: "gpu-0", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"driverVersion": {VersionValue: ptr.To("570.86.15")}}}}}},
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "budget", Namespace: "ns"}, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromString("50%"))}},
	}}
	s.Anonymize([32]byte{1})
	text := unzipped(t, s)
	for _, word := range []string{"secret", "kunden", "m\u00fc", "\u00fc", "ller", "\u79d8", "\u5bc6"} {
		if strings.Contains(text, word) {
			t.Errorf("the file has %q:\n%s", word, text)
		}
	}
	for _, want := range []string{`"570.86.15"`, `"targetPort":8080`, `"minAvailable":"50%"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the file does not have %s:\n%s", want, text)
		}
	}
}

// PodGroups whose names are made of texts of their pods are found, and texts keep their order.
func TestAnonymizeOfMadeNames(t *testing.T) {
	t.Parallel()
	s := &Snapshot{}
	add := func(pod *wrappers.PodWrapper) {
		s.Objects = append(s.Objects, pod.Obj(), wrappers.MakePodGroup(membership.Group(pod.Obj()), "ns").MinMember(1).Obj())
	}
	for i := range 3 {
		of := func(kind, name string) *wrappers.PodWrapper {
			return wrappers.MakePod(fmt.Sprintf("%s-%d", name, i), "ns").Controller(kind, name, fmt.Sprintf("%s-uid-%d", name, i)).Annotation(v2alpha2.GangKey, "true")
		}
		job := of("Job", fmt.Sprintf("set-%d-workers-0", i))
		for key, value := range membership.JobSetLabels(fmt.Sprintf("set-%d", i), "4c8b4e0b-2f0e-4c3f-9d52-1b7f4a2c9c11", "workers", 0) {
			job.Label(key, value)
		}
		add(job)
		replica := of("StatefulSet", "llm")
		for key, value := range membership.ReplicaLabels("llm", i, 1) {
			replica.Label(key, value)
		}
		add(replica)
		add(of("Job", fmt.Sprintf("marked-%d", i)).Annotation(v2alpha2.MinMemberKey, "1"))
		add(of("ReplicaSet", fmt.Sprintf("web-%d-6b474476c4", i)).Annotation(v2alpha2.MinMemberKey, "1").Label("pod-template-hash", "6b474476c4"))
		long := of("Job", "long").Gang(strings.Repeat("a-", 25) + fmt.Sprint(i))
		add(long)
	}
	var before []string
	for _, object := range s.Objects {
		if pod, ok := object.(*corev1.Pod); ok {
			before = append(before, pod.Name)
		}
	}
	s.Anonymize([32]byte{3})
	var after []string
	for i := 0; i < len(s.Objects); i += 2 {
		pod, group := s.Objects[i].(*corev1.Pod), s.Objects[i+1].(*v2alpha2.PodGroup)
		if membership.Group(pod) != group.Name || group.Name == "" || len(group.Name) > 63 {
			t.Errorf("pod %v looks for PodGroup %q, not for %q", pod.OwnerReferences, membership.Group(pod), group.Name)
		}
		after = append(after, pod.Name)
	}
	for i := range before {
		for j := range before {
			if (before[i] < before[j]) != (after[i] < after[j]) {
				t.Errorf("%s and %s have another order than %s and %s", before[i], before[j], after[i], after[j])
			}
		}
	}
}

// Types of texts that are not replaced are enumerated, or names of resources and attributes of devices. A new one has
// to be looked at.
func TestTypesOfTexts(t *testing.T) {
	t.Parallel()
	found, seen := sets.New[string](), sets.New[reflect.Type]()
	var look func(reflect.Type)
	look = func(of reflect.Type) {
		if seen.Has(of) || skippedTypes.Has(of) || of == reflect.TypeFor[runtime.RawExtension]() {
			return
		}
		seen.Insert(of)
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			look(of.Elem())
		case reflect.Map:
			look(of.Key())
			look(of.Elem())
		case reflect.Struct:
			for i := range of.NumField() {
				look(of.Field(i).Type)
			}
		case reflect.String:
			if !replacedTypes.Has(of) {
				found.Insert(of.Name())
			}
		case reflect.Interface:
			if of.NumMethod() > 0 {
				t.Errorf("%s is not replaced", of)
			}
		}
	}
	for i := range Kinds {
		look(reflect.TypeOf(Kinds[i].new()))
	}
	if diff := cmp.Diff(strings.Fields(enumeratedTypes), slices.Sorted(slices.Values(found.UnsortedList()))); diff != "" {
		t.Errorf("types of texts that stay (-want +got):\n%s", diff)
	}
}

const enumeratedTypes = `
AllocationConfigSource AppArmorProfileType AvailabilityState AzureDataDiskCachingMode AzureDataDiskKind Capability
ClaimResourceStatus CliqueStartupType CompletionMode ConditionStatus ContainerRestartPolicy ContainerRestartRuleAction
ContainerRestartRuleOnExitCodesOperator DNSPolicy DeviceAllocationMode DeviceTaintEffect DeviceTolerationOperator
DisruptionMode FSGroupPolicy FinalizerName FullyQualifiedName GRPCProbeMode HTTPProtocol HostPathType IPFamily
IPFamilyPolicy JobConditionType LabelSelectorOperator LoadBalancerIPMode ManagedFieldsOperationType MetricSourceType
MetricTargetType MountPropagationMode NamespaceConditionType NamespacePhase NodeAddressType NodeConditionType
NodeInclusionPolicy NodePhase NodeSelectorOperator OSName PersistentVolumeAccessMode
PersistentVolumeClaimConditionType PersistentVolumeClaimModifyVolumeStatus PersistentVolumeClaimPhase
PersistentVolumeClaimRetentionPolicyType PersistentVolumeMode PersistentVolumePhase PersistentVolumeReclaimPolicy
PodCliqueSetPhase PodConditionType PodFSGroupChangePolicy PodFailurePolicyAction PodFailurePolicyOnExitCodesOperator
PodGroupPhase PodManagementPolicyType PodPhase PodQOSClass PodReplacementPolicy PodResizeStatus PodSELinuxChangePolicy
Preemptibility PreemptionPolicy ProcMountType Protocol PullPolicy QualifiedName Reason RecursiveReadOnlyMode
ReplicaSetConditionType ReplicationControllerConditionType ResourceHealthStatus ResourceName
ResourceResizeRestartPolicy ResourceSharingScope RestartPolicy SeccompProfileType ServiceAffinity
ServiceExternalTrafficPolicy ServiceInternalTrafficPolicy ServiceType Signal SkipNodeOperation
StatefulSetConditionType StatefulSetUpdateStrategyType StorageHealthStatusType StorageMedium SupplementalGroupsPolicy
TaintEffect TerminationMessagePolicy TolerationOperator URIScheme UnhealthyPodEvictionPolicyType
UnsatisfiableConstraintAction UpdateStrategyType VolumeBindingMode VolumeHealthStatusType VolumeLifecycleMode
WorkloadType
`
