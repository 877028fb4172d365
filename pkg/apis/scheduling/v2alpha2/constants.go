package v2alpha2

const (
	// PodGroupAnnotation, on a pod, names the PodGroup of the pod's namespace
	// that the pod is a member of.
	PodGroupAnnotation = "pod-group-name"

	// SubGroupLabel, on a pod, names the leaf of the PodGroup's tree that the
	// pod counts towards. It has no meaning for a PodGroup without sub-groups:
	// all of its pods count.
	SubGroupLabel = "kai.scheduler/subgroup-name"

	// BoundForAnnotation, on a pod, is the mark that muster-scheduler leaves in
	// the Binding, and the API server copies to the pod, of every gang member it
	// binds: which plan bound the pod, signed with a key of the scheduler's for
	// this pod's UID (package mark). After a crash it shows which pods were
	// bound by which plan. A text that does not verify is ignored.
	BoundForAnnotation = "scheduling.run.ai/bound-for"

	// ReplacingAnnotation, on a PodGroup, says that pods of the gang are being
	// replaced: who keeps it (muster-controller, during an update) deletes pods and
	// makes others in their stead. Any value but the empty one will do. As long as
	// it is there, the room of a bound pod of an admitted sub-group that is deleted
	// is kept for the next pods of the same leaf: nothing of the same or a lower
	// priority takes it, for the scheduler's replacementTimeout at most, counted
	// from when the pod began to terminate. To be set before the pod is deleted.
	ReplacingAnnotation = "scheduling.run.ai/replacing"
)

const (
	// MaxSubGroups is the most sub-groups that a PodGroup may have.
	MaxSubGroups = 1024
)
