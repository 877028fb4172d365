// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Recommended labels of Kubernetes, on every object that muster-controller
// creates.
const (
	// LabelManagedBy distinguishes objects created for a PodCliqueSet from all
	// others.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelManagedByValue is the only value of LabelManagedBy. It is the value
	// that Grove uses, because users select by it.
	LabelManagedByValue = "grove-operator"
	// LabelPartOf holds the name of the PodCliqueSet.
	LabelPartOf = "app.kubernetes.io/part-of"
	// LabelName holds the name of the object.
	LabelName = "app.kubernetes.io/name"
	// LabelComponent holds the purpose of the object, one of the Component
	// values.
	LabelComponent = "app.kubernetes.io/component"
)

// Values of LabelComponent.
const (
	ComponentHeadlessService       = "pcs-headless-service"
	ComponentPodRole               = "pod-role"
	ComponentPodRoleBinding        = "pod-role-binding"
	ComponentPodCliqueScalingGroup = "pcs-podcliquescalinggroup"
	ComponentHPA                   = "pcs-hpa"
	ComponentPodGroup              = "podgang"
	ComponentRevision              = "pcs-revision"
	ComponentStandalonePodClique   = "pcs-podclique"
	ComponentMemberPodClique       = "pcsg-podclique"
)

// Labels of grove.io.
const (
	// LabelPodClique, on a pod, holds the name of its PodClique.
	LabelPodClique = "grove.io/podclique"
	// LabelPodGang, on a PodClique and its pods, holds the name that Grove's
	// PodGang would have. Muster does not use it; it is set for tools that read
	// it.
	LabelPodGang = "grove.io/podgang"
	// LabelBasePodGang, on PodCliques and pods of a scaling-group replica above
	// the group's minimum, holds the name that Grove's base PodGang would have.
	// Muster does not use it; it is set for tools that read it.
	LabelBasePodGang = "grove.io/base-podgang"
	// LabelPodCliqueSetReplicaIndex holds the index of the PodCliqueSet's
	// replica that the object is part of.
	LabelPodCliqueSetReplicaIndex = "grove.io/podcliqueset-replica-index"
	// LabelPodCliqueScalingGroup, on a member PodClique and its pods, holds the
	// name of the PodCliqueScalingGroup.
	LabelPodCliqueScalingGroup = "grove.io/podcliquescalinggroup"
	// LabelPodCliqueScalingGroupReplicaIndex, on a member PodClique and its
	// pods, holds the index of the PodCliqueScalingGroup's replica.
	LabelPodCliqueScalingGroupReplicaIndex = "grove.io/podcliquescalinggroup-replica-index"
	// LabelPodIndex, on a pod, holds its index in its PodClique.
	LabelPodIndex = "grove.io/podclique-pod-index"
	// LabelPodTemplateHash, on a PodClique and its pods, holds the hash of the
	// template that the object was created from.
	LabelPodTemplateHash = "grove.io/pod-template-hash"
	// LabelTemplateName, on a PodClique and on a PodCliqueScalingGroup, holds
	// the name of the clique or scaling group in the PodCliqueSet's template.
	// muster-controller matches children with the template by this label, never
	// by their names.
	LabelTemplateName = "grove.io/template-name"
)

// Annotations.
const (
	// AnnotationInitialReplicas, on a PodClique, holds the spec.replicas that
	// it was created with: the upper bound of the minimum while
	// spec.minAvailable is unset.
	AnnotationInitialReplicas = "grove.io/initial-replicas"
	// AnnotationTemplateReplicas, on a PodClique or PodCliqueScalingGroup,
	// holds the replicas that its template last set. As long as spec.replicas
	// has the same value, the object has not been scaled and follows its
	// template.
	AnnotationTemplateReplicas = "grove.io/template-replicas"
	// AnnotationPodCliqueSetAttempt, on PodGroups, PodCliques and pods, holds
	// the attempt of the PodCliqueSet's replica that the object was created
	// for. On PodCliqueScalingGroups, the PodCliqueSet controller keeps it up
	// to date. Absent: 0.
	AnnotationPodCliqueSetAttempt = "grove.io/podcliqueset-attempt"
	// AnnotationPodCliqueScalingGroupAttempt, on member PodCliques and their
	// pods, holds the attempt of the scaling group's replica that the object
	// was created for. Absent: 0.
	AnnotationPodCliqueScalingGroupAttempt = "grove.io/podcliquescalinggroup-attempt"
	// AnnotationPodCliqueSetUID, on PodCliques and pods, holds the UID of the
	// PodCliqueSet that the object was created for. It distinguishes the object
	// from those of a deleted PodCliqueSet of the same name when the owners
	// between them are gone. Absent: created by a version that did not write
	// it.
	AnnotationPodCliqueSetUID = "grove.io/podcliqueset-uid"
	// AnnotationTerminationDelay, on a PodClique, holds the effective
	// terminationDelay. The controller of the owner keeps it up to date.
	// Absent: none.
	AnnotationTerminationDelay = "grove.io/termination-delay"
	// AnnotationWorkloadType, on a PodClique, holds the workloadType of the
	// PodCliqueSet if that is Training. Absent: Inference. It remains when the
	// PodCliqueSet is gone.
	AnnotationWorkloadType = "grove.io/workload-type"
	// AnnotationWorkloadFailed, on a PodClique of a Training workload that has
	// failed, holds the reason of the condition Failed. muster-controller
	// creates no more pods for such a PodClique, and deletes those that are
	// running.
	AnnotationWorkloadFailed = "grove.io/workload-failed"
	// AnnotationGenerationHash, on a PodClique and a PodCliqueScalingGroup,
	// holds the generation hash of the PodCliqueSet's revision that the object
	// is to follow. The controller of the owner keeps it up to date. It does not
	// change before an update that changes the object's template reaches it.
	AnnotationGenerationHash = "grove.io/podcliqueset-generation-hash"
	// AnnotationRevision, on the same objects, holds the number of that
	// revision. A controller that still observes an older revision does not
	// write objects with a higher number.
	AnnotationRevision = "grove.io/podcliqueset-revision"
	// AnnotationUpdateStrategy, on a PodClique and a PodCliqueScalingGroup,
	// holds OnDelete if that is the PodCliqueSet's update strategy. Absent:
	// RollingRecreate.
	AnnotationUpdateStrategy = "grove.io/update-strategy"
	// AnnotationUpdateTurn, on a PodClique and a PodCliqueScalingGroup, holds
	// the number of the revision whose update may replace the object's pods. If
	// it is absent, or differs from AnnotationRevision, the object must wait
	// for its turn. On a member of a scaling group it is present as long as the
	// group is updated.
	AnnotationUpdateTurn = "grove.io/update-turn"
	// AnnotationUpdatePaused, on a standalone PodClique, is present while its
	// update is paused. Scaling groups read that from the PodCliqueSet.
	AnnotationUpdatePaused = "grove.io/update-paused"
	// AnnotationMNNVLGroup requests a multi-node NVLink domain in Grove. Not
	// implemented.
	AnnotationMNNVLGroup = "grove.io/mnnvl-group"
)

// ControllerClass is the key of an annotation of a PodCliqueSet, or of a label
// of a namespace. It holds the class of the controller that serves the
// PodCliqueSet, or those in the namespace that have no such annotation. Absent
// or empty: see docs/decisions, W12.
const ControllerClass = "grove.io/controller-class"

// DefaultControllerClass is the class of muster-controller, unless it is
// configured with another one.
const DefaultControllerClass = "muster"

// Environment variables of every container and init container.
const (
	// EnvPodCliqueSetName holds the name of the PodCliqueSet.
	EnvPodCliqueSetName = "GROVE_PCS_NAME"
	// EnvPodCliqueSetIndex holds the index of the PodCliqueSet's replica.
	EnvPodCliqueSetIndex = "GROVE_PCS_INDEX"
	// EnvPodCliqueName holds the name of the PodClique object.
	EnvPodCliqueName = "GROVE_PCLQ_NAME"
	// EnvHeadlessService holds the DNS name of the replica's headless Service.
	EnvHeadlessService = "GROVE_HEADLESS_SERVICE"
	// EnvPodIndex holds the index of the pod in its PodClique.
	EnvPodIndex = "GROVE_PCLQ_POD_INDEX"
	// EnvPodCliqueScalingGroupName holds the name of the PodCliqueScalingGroup
	// object. Set only in member PodCliques.
	EnvPodCliqueScalingGroupName = "GROVE_PCSG_NAME"
	// EnvPodCliqueScalingGroupIndex holds the index of the scaling group's
	// replica. Set only in member PodCliques.
	EnvPodCliqueScalingGroupIndex = "GROVE_PCSG_INDEX"
	// EnvPodCliqueScalingGroupNumPods holds the number of pods in one replica
	// of the scaling group, according to the template. Set only in member
	// PodCliques.
	EnvPodCliqueScalingGroupNumPods = "GROVE_PCSG_TEMPLATE_NUM_PODS"
)

// FinalizerPodTracking prevents the removal of a pod of a Training workload
// until its PodClique has recorded how the pod ended.
const FinalizerPodTracking = "grove.io/pod-tracking"

// InitContainerName is the name of the init container that waits for the
// cliques that must start before.
const InitContainerName = "grove-initc"

// DefaultSchedulerName is the scheduler of pods whose template has no
// schedulerName, unless muster-controller is configured with another one.
const DefaultSchedulerName = "muster-scheduler"

// DefaultTerminationGracePeriodSeconds is the grace period of pods whose
// template has none.
const DefaultTerminationGracePeriodSeconds int64 = 30

// MaxPods is the maximum number of pods of a PodCliqueSet, and therefore the
// maximum of its replicas and of those of a PodClique. No Kubernetes cluster
// runs more pods.
const MaxPods = 150_000
