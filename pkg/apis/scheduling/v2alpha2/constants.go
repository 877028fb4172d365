package v2alpha2

const (
	// PodGroupAnnotation, on a pod, names the PodGroup of the pod's namespace
	// that the pod is a member of.
	PodGroupAnnotation = "pod-group-name"

	// SubGroupLabel, on a pod, names the leaf of the PodGroup's tree that the
	// pod counts towards. Without meaning for a PodGroup without sub-groups.
	SubGroupLabel = "kai.scheduler/subgroup-name"

	// BoundForAnnotation, on a pod, is the mark that muster-scheduler leaves in
	// the Binding, and the API server copies to the pod, of every gang member it
	// binds: "<PodGroup UID>/<pods in plan>/<16 hex digits>". After a crash it
	// tells which pods were bound by which plan.
	BoundForAnnotation = "scheduling.run.ai/bound-for"
)

const (
	// MaxSubGroups is the most sub-groups that a PodGroup may have.
	MaxSubGroups = 1024

	// MaxSubGroupDepth is the most levels of sub-groups below the PodGroup; a
	// sub-group without a parent is on level 1.
	MaxSubGroupDepth = 8
)
