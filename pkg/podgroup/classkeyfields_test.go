// SPDX-License-Identifier: Apache-2.0

package podgroup_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/podgroup"
)

// notFiltered are the fields that no filter of kube-scheduler reads, so that they need not be in the key of a class.
// Before a field of a newer version of Kubernetes is added, look at what the filters in
// k8s.io/kubernetes/pkg/scheduler/framework/plugins do with it.
var notFiltered = map[reflect.Type]sets.Set[string]{
	reflect.TypeFor[corev1.PodSpec](): sets.New(
		"EphemeralContainers",                                                                                     // they have no resources or ports, and are added to running pods only
		"RestartPolicy",                                                                                           // what the kubelet does with containers that end
		"TerminationGracePeriodSeconds",                                                                           // for the kubelet
		"ActiveDeadlineSeconds",                                                                                   // for the kubelet
		"DNSPolicy", "DNSConfig", "HostAliases", "Hostname", "Subdomain", "SetHostnameAsFQDN", "HostnameOverride", // names
		"ServiceAccountName", "DeprecatedServiceAccount", "AutomountServiceAccountToken", // identity
		"HostPID", "HostIPC", "ShareProcessNamespace", "SecurityContext", // how containers are isolated
		"ImagePullSecrets",
		"PriorityClassName", // the priority is in the key
		"PreemptionPolicy",  // for PostFilter, which is not part of a plan
		"ReadinessGates",    // the condition Ready
		"EnableServiceLinks",
		"Volumes",            // see VolumeSource; here each has all sources
		"SchedulingGates",    // a pod that has one is not planned
		"SchedulingGroup",    // names the gang
		"EvictionResponders", // who is asked before the pod is evicted
	),
	reflect.TypeFor[corev1.Container](): sets.New(
		"Name", "Command", "Args", "WorkingDir", "EnvFrom", "Env", // what runs
		"Image", "ImagePullPolicy", // only scores read images
		"ResizePolicy",                  // for the kubelet
		"VolumeMounts", "VolumeDevices", // the volumes are in the key
		"LivenessProbe", "ReadinessProbe", "StartupProbe", "Lifecycle",
		"TerminationMessagePath", "TerminationMessagePolicy", "SecurityContext", "Stdin", "StdinOnce", "TTY",
	),
	reflect.TypeFor[corev1.VolumeSource](): sourcesOf(anyNumber),
}

// What the filters do with a volume, by its source.
const (
	anyNumber = "every node can provide any number"
	aClaim    = "VolumeBinding, VolumeZone and NodeVolumeLimits read the claim, VolumeRestrictions whether a pod uses it; plans count claims"
	aDisk     = "VolumeRestrictions compares it with those of pods on the node"
	migrated  = "NodeVolumeLimits counts it where a CSI driver serves it"
	unread    = "no filter reads it: pods that differ by it are classes of their own, which is always right"
)

// volumeSources says what the filters do with each source of volumes. Before a source of a newer version of Kubernetes
// is added, look at what the filters do with it, and at kubescheduler/volumes.go if pods of a class can have different
// ones.
var volumeSources = map[string]string{
	"HostPath": anyNumber, "EmptyDir": anyNumber, "Secret": anyNumber, "DownwardAPI": anyNumber, "ConfigMap": anyNumber, "Projected": anyNumber,
	"PersistentVolumeClaim": aClaim,
	"Ephemeral":             aClaim, // named after the pod and the volume
	"RBD":                   aDisk, "ISCSI": aDisk,
	"GCEPersistentDisk": aDisk + "; " + migrated, "AWSElasticBlockStore": aDisk + "; " + migrated,
	"AzureDisk": migrated, "AzureFile": migrated, "Cinder": migrated, "VsphereVolume": migrated, "PortworxVolume": migrated,
	"CSI": unread, "NFS": unread, "Glusterfs": unread, "FlexVolume": unread, "CephFS": unread, "Flocker": unread, "FC": unread, "Quobyte": unread,
	"PhotonPersistentDisk": unread, "ScaleIO": unread, "StorageOS": unread, "GitRepo": unread, "Image": unread,
}

func sourcesOf(what string) sets.Set[string] {
	out := sets.New[string]()
	for source, read := range volumeSources {
		if read == what {
			out.Insert(source)
		}
	}
	return out
}

// TestEveryVolumeSourceIsKnown: a source that a newer version of Kubernetes adds is not in the table.
func TestEveryVolumeSourceIsKnown(t *testing.T) {
	t.Parallel()
	all := sets.New[string]()
	for _, field := range reflect.VisibleFields(reflect.TypeFor[corev1.VolumeSource]()) {
		all.Insert(field.Name)
	}
	if known := sets.KeySet(volumeSources); !known.Equal(all) {
		t.Errorf("unknown sources of volumes: %v; sources that do not exist: %v", sets.List(all.Difference(known)), sets.List(known.Difference(all)))
	}
}

// TestEveryFieldIsInTheClassKey: a field of a pod is part of the key of its class, or in the list of those that no
// filter reads. A field that a newer version of Kubernetes adds is in neither.
func TestEveryFieldIsInTheClassKey(t *testing.T) {
	t.Parallel()
	pod := func(change func(*corev1.PodSpec)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "a", UID: "a"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{}}}}
		change(&p.Spec)
		return p
	}
	base := podgroup.ClassKey(pod(func(*corev1.PodSpec) {}))
	for kind, place := range map[reflect.Type]func(*corev1.PodSpec) reflect.Value{
		reflect.TypeFor[corev1.PodSpec]():   func(s *corev1.PodSpec) reflect.Value { return reflect.ValueOf(s) },
		reflect.TypeFor[corev1.Container](): func(s *corev1.PodSpec) reflect.Value { return reflect.ValueOf(&s.Containers[0]) },
		reflect.TypeFor[corev1.VolumeSource](): func(s *corev1.PodSpec) reflect.Value {
			s.Volumes = []corev1.Volume{{}}
			return reflect.ValueOf(&s.Volumes[0].VolumeSource)
		},
	} {
		unread := notFiltered[kind].Clone()
		for i := range kind.NumField() {
			name := kind.Field(i).Name
			key := podgroup.ClassKey(pod(func(s *corev1.PodSpec) {
				field := place(s).Elem().Field(i)
				field.SetZero()
				fillNonZero(t, field, 0)
			}))
			switch inKey := key != base; {
			case !inKey && !unread.Has(name):
				t.Errorf("%s.%s is neither in the key of a class nor in the list of fields that no filter reads: see which it is, and add it", kind.Name(), name)
			case inKey && unread.Has(name):
				t.Errorf("%s.%s is in the key of a class, although no filter reads it", kind.Name(), name)
			}
			unread.Delete(name)
		}
		for name := range unread {
			t.Errorf("%s has no field %s any more: remove it from the list", kind.Name(), name)
		}
	}
}

// fillNonZero sets a value, and those below it, to something else than zero.
func fillNonZero(t *testing.T, v reflect.Value, depth int) {
	t.Helper()
	if depth > 12 {
		return // of a type that contains itself
	}
	if v.CanAddr() {
		if q, ok := v.Addr().Interface().(*resource.Quantity); ok {
			*q = resource.MustParse("1")
			return
		}
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.String:
		v.SetString("x")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillNonZero(t, v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillNonZero(t, v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillNonZero(t, key, depth+1)
		fillNonZero(t, value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillNonZero(t, v.Field(i), depth+1)
			}
		}
	default:
		t.Fatalf("a field of kind %s: fill it", v.Kind())
	}
}
