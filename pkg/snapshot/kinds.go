// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
)

// Kind is a kind of objects that a snapshot contains.
type Kind struct {
	schema.GroupVersionKind
	Resource string // plural, in lower case
	new      func() client.Object
	newList  func() client.ObjectList
	// Without is what is not known without the objects. "": nothing can be said.
	Without string
	strip   func(client.Object) // nil: nothing but what is dropped from all objects
}

// Needed reports whether nothing can be said without the objects.
func (k *Kind) Needed() bool { return k.Without == "" }

// Kinds are the kinds that a snapshot contains: those that muster-scheduler reads, and the owners of pods.
var Kinds = []Kind{
	of[*corev1.Node, *corev1.NodeList](corev1.SchemeGroupVersion, "Node", "nodes", "").stripped(stripNode),
	of[*corev1.Pod, *corev1.PodList](corev1.SchemeGroupVersion, "Pod", "pods", "").stripped(stripPod),
	of[*v2alpha2.PodGroup, *v2alpha2.PodGroupList](v2alpha2.SchemeGroupVersion, "PodGroup", "podgroups", ""),
	of[*topologyv1alpha1.Topology, *topologyv1alpha1.TopologyList](topologyv1alpha1.SchemeGroupVersion, "Topology", "topologies",
		"the levels of Topologies"),
	of[*grovev1alpha1.ClusterTopologyBinding, *grovev1alpha1.ClusterTopologyBindingList](grovev1alpha1.SchemeGroupVersion, "ClusterTopologyBinding",
		"clustertopologybindings", "the topology constraints of PodCliqueSets of manifests"),
	of[*schedulingv1.PriorityClass, *schedulingv1.PriorityClassList](schedulingv1.SchemeGroupVersion, "PriorityClass", "priorityclasses",
		"the priorities of PodGroups that name a class"),
	of[*corev1.Namespace, *corev1.NamespaceList](corev1.SchemeGroupVersion, "Namespace", "namespaces", "affinity to pods of other namespaces"),
	of[*policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudgetList](policyv1.SchemeGroupVersion, "PodDisruptionBudget", "poddisruptionbudgets",
		"which pods are rather not preempted"),
	of[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaimList](corev1.SchemeGroupVersion, "PersistentVolumeClaim", "persistentvolumeclaims", volumes),
	of[*corev1.PersistentVolume, *corev1.PersistentVolumeList](corev1.SchemeGroupVersion, "PersistentVolume", "persistentvolumes", volumes),
	of[*storagev1.StorageClass, *storagev1.StorageClassList](storagev1.SchemeGroupVersion, "StorageClass", "storageclasses", volumes),
	of[*storagev1.CSINode, *storagev1.CSINodeList](storagev1.SchemeGroupVersion, "CSINode", "csinodes", volumes),
	of[*storagev1.CSIDriver, *storagev1.CSIDriverList](storagev1.SchemeGroupVersion, "CSIDriver", "csidrivers", volumes),
	of[*storagev1.CSIStorageCapacity, *storagev1.CSIStorageCapacityList](storagev1.SchemeGroupVersion, "CSIStorageCapacity", "csistoragecapacities", volumes),
	of[*storagev1.VolumeAttachment, *storagev1.VolumeAttachmentList](storagev1.SchemeGroupVersion, "VolumeAttachment", "volumeattachments", volumes),
	of[*resourcev1.ResourceClaim, *resourcev1.ResourceClaimList](resourcev1.SchemeGroupVersion, "ResourceClaim", "resourceclaims", devices),
	of[*resourcev1.ResourceSlice, *resourcev1.ResourceSliceList](resourcev1.SchemeGroupVersion, "ResourceSlice", "resourceslices", devices),
	of[*resourcev1.DeviceClass, *resourcev1.DeviceClassList](resourcev1.SchemeGroupVersion, "DeviceClass", "deviceclasses", devices),
	of[*resourcev1.DeviceTaintRule, *resourcev1.DeviceTaintRuleList](resourcev1.SchemeGroupVersion, "DeviceTaintRule", "devicetaintrules",
		"the devices that rules taint"),
	of[*resourcev1.ResourceClaimTemplate, *resourcev1.ResourceClaimTemplateList](resourcev1.SchemeGroupVersion, "ResourceClaimTemplate", "resourceclaimtemplates",
		"the claims of pods of manifests"),
	of[*corev1.Service, *corev1.ServiceList](corev1.SchemeGroupVersion, "Service", "services", spread),
	of[*corev1.ReplicationController, *corev1.ReplicationControllerList](corev1.SchemeGroupVersion, "ReplicationController", "replicationcontrollers", spread).
		stripped(func(o client.Object) { stripTemplate(o.(*corev1.ReplicationController).Spec.Template) }),
	of[*appsv1.ReplicaSet, *appsv1.ReplicaSetList](appsv1.SchemeGroupVersion, "ReplicaSet", "replicasets", spread).
		stripped(func(o client.Object) { stripTemplate(&o.(*appsv1.ReplicaSet).Spec.Template) }),
	of[*appsv1.StatefulSet, *appsv1.StatefulSetList](appsv1.SchemeGroupVersion, "StatefulSet", "statefulsets", spread).
		stripped(func(o client.Object) { stripTemplate(&o.(*appsv1.StatefulSet).Spec.Template) }),
	of[*batchv1.Job, *batchv1.JobList](batchv1.SchemeGroupVersion, "Job", "jobs", "names of Jobs").
		stripped(func(o client.Object) { stripTemplate(&o.(*batchv1.Job).Spec.Template) }),
	of[*grovev1alpha1.PodCliqueSet, *grovev1alpha1.PodCliqueSetList](grovev1alpha1.SchemeGroupVersion, "PodCliqueSet", "podcliquesets",
		"names and states of PodCliqueSets").stripped(func(o client.Object) { stripSet(o.(*grovev1alpha1.PodCliqueSet)) }),
	of[*grovev1alpha1.PodCliqueScalingGroup, *grovev1alpha1.PodCliqueScalingGroupList](grovev1alpha1.SchemeGroupVersion, "PodCliqueScalingGroup",
		"podcliquescalinggroups", breaches),
	of[*grovev1alpha1.PodClique, *grovev1alpha1.PodCliqueList](grovev1alpha1.SchemeGroupVersion, "PodClique", "podcliques", breaches).
		stripped(func(o client.Object) { stripPodSpec(&o.(*grovev1alpha1.PodClique).Spec.PodSpec) }),
}

const (
	volumes = "where volumes are"
	devices = "the devices of claims"
	spread  = "default spreading, which only decides among nodes that fit"

	breaches = "breaches, updates and attempts of parts of PodCliqueSets"
)

// of returns the kind of the types.
func of[T interface {
	*O
	client.Object
}, L interface {
	*M
	client.ObjectList
}, O, M any](version schema.GroupVersion, kind, resource, without string) Kind {
	return Kind{
		GroupVersionKind: version.WithKind(kind), Resource: resource, Without: without,
		new: func() client.Object { return T(new(O)) }, newList: func() client.ObjectList { return L(new(M)) },
	}
}

// kindOf returns the kind of a resource, "podgroups.scheduling.run.ai". Panics if a snapshot has none of it.
func kindOf(resource string) *Kind {
	return &Kinds[slices.IndexFunc(Kinds, func(k Kind) bool { return k.qualified() == resource })]
}

func (k Kind) stripped(strip func(client.Object)) Kind {
	k.strip = strip
	return k
}

// newScheme returns a scheme of all kinds. An error means a broken build.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme,
		resourcev1.AddToScheme, v2alpha2.AddToScheme, topologyv1alpha1.AddToScheme, grovev1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}
