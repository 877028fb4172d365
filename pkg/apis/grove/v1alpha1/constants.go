package v1alpha1

// Labels of the standard vocabulary, on every object that muster-controller
// makes.
const (
	// LabelManagedBy tells objects made for a PodCliqueSet from all others.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelManagedByValue is the only value of LabelManagedBy. It is Grove's,
	// because users select by it.
	LabelManagedByValue = "grove-operator"
	// LabelPartOf holds the name of the PodCliqueSet.
	LabelPartOf = "app.kubernetes.io/part-of"
	// LabelName holds the name of the object.
	LabelName = "app.kubernetes.io/name"
	// LabelComponent says what the object is for, one of the Component values.
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
	// PodGang would have. Without effect; kept for those who read it.
	LabelPodGang = "grove.io/podgang"
	// LabelBasePodGang, on PodCliques and pods of a scaling-group replica above
	// the group's minimum, holds the name that Grove's base PodGang would have.
	// Without effect; kept for those who read it.
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
	// template that it was made from.
	LabelPodTemplateHash = "grove.io/pod-template-hash"
	// LabelTemplateName, on a PodClique and on a PodCliqueScalingGroup, holds
	// the name of the clique or scaling group in the PodCliqueSet's template.
	// Children are related to the template by it, never by their names.
	LabelTemplateName = "grove.io/template-name"
)

// Annotations.
const (
	// AnnotationInitialReplicas, on a PodClique, holds its spec.replicas of the
	// moment when it was created: the most that the minimum can be while
	// spec.minAvailable is unset.
	AnnotationInitialReplicas = "grove.io/initial-replicas"
	// AnnotationTemplateReplicas, on a PodClique or PodCliqueScalingGroup, holds
	// the replicas that its template last gave it. As long as spec.replicas is
	// the same, the object has not been scaled and follows its template.
	AnnotationTemplateReplicas = "grove.io/template-replicas"
	// AnnotationPodCliqueSetAttempt holds the attempt of the PodCliqueSet's
	// replica that an object was made for; on PodGroups, PodCliques and pods.
	// The PodCliqueSet keeps it up to date on PodCliqueScalingGroups. Absent: 0.
	AnnotationPodCliqueSetAttempt = "grove.io/podcliqueset-attempt"
	// AnnotationPodCliqueScalingGroupAttempt holds the attempt of the scaling
	// group's replica that an object was made for; on member PodCliques and
	// their pods. Absent: 0.
	AnnotationPodCliqueScalingGroupAttempt = "grove.io/podcliquescalinggroup-attempt"
	// AnnotationTerminationDelay, on a PodClique, holds the effective
	// terminationDelay. The owner keeps it up to date. Absent: none.
	AnnotationTerminationDelay = "grove.io/termination-delay"
	// AnnotationWorkloadType, on a PodClique, holds the workloadType of the
	// PodCliqueSet: Training. Absent: Inference. It stays when the PodCliqueSet
	// is gone.
	AnnotationWorkloadType = "grove.io/workload-type"
	// AnnotationWorkloadFailed, on a PodClique of a Training workload that has
	// failed, holds the reason of the condition Failed: no pod is created any
	// more, and those that run are deleted.
	AnnotationWorkloadFailed = "grove.io/workload-failed"
	// AnnotationGenerationHash, on a PodClique and a PodCliqueScalingGroup, holds
	// the generation hash of the PodCliqueSet's revision that it is to follow. The
	// owner keeps it up to date.
	AnnotationGenerationHash = "grove.io/podcliqueset-generation-hash"
	// AnnotationRevision, beside it, holds the number of that revision. What has a
	// higher one is not written by a controller that still sees an older.
	AnnotationRevision = "grove.io/podcliqueset-revision"
	// AnnotationUpdateStrategy, on a PodClique and a PodCliqueScalingGroup, holds
	// OnDelete if that is the PodCliqueSet's update strategy. Absent:
	// RollingRecreate.
	AnnotationUpdateStrategy = "grove.io/update-strategy"
	// AnnotationUpdateTurn, on a PodClique and a PodCliqueScalingGroup, holds the
	// number of the revision whose update may replace what it has. Absent or another
	// number than AnnotationRevision: its turn has not come. On a member of a
	// scaling group it is there as long as the group is updated.
	AnnotationUpdateTurn = "grove.io/update-turn"
	// AnnotationMNNVLGroup asks Grove for a multi-node NVLink domain. Not acted
	// on.
	AnnotationMNNVLGroup = "grove.io/mnnvl-group"
)

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
	// object; members of one only.
	EnvPodCliqueScalingGroupName = "GROVE_PCSG_NAME"
	// EnvPodCliqueScalingGroupIndex holds the index of the scaling group's
	// replica; members of one only.
	EnvPodCliqueScalingGroupIndex = "GROVE_PCSG_INDEX"
	// EnvPodCliqueScalingGroupNumPods holds the number of pods in one replica of
	// the scaling group, by the template; members of one only.
	EnvPodCliqueScalingGroupNumPods = "GROVE_PCSG_TEMPLATE_NUM_PODS"
)

// FinalizerPodTracking keeps the object of a pod of a Training workload until its
// PodClique has recorded how it ended.
const FinalizerPodTracking = "grove.io/pod-tracking"

// InitContainerName is the name of the init container that waits for the
// cliques that must be started before.
const InitContainerName = "grove-initc"

// DefaultSchedulerName is the scheduler of pods whose template names none,
// unless muster-controller is configured otherwise.
const DefaultSchedulerName = "muster-scheduler"

// DefaultTerminationGracePeriodSeconds is a pod's grace period where its
// template has none.
const DefaultTerminationGracePeriodSeconds int64 = 30

// MaxPods is the most pods that a PodCliqueSet may ask for, and so the most
// replicas of it and of a PodClique: no Kubernetes cluster runs more.
const MaxPods = 150_000
