// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
)

// LostPods describes the waiting pods of a gang that have no place in it for the same cause, and the event about
// them.
type LostPods struct {
	// First is the oldest of these pods.
	First *corev1.Pod
	// Pods is the number of these pods.
	Pods int
	// Cause distinguishes them from other LostPods of the gang.
	Cause string
	// Reason and Note are those of the event.
	Reason, Note string
}

// FindLostPods returns the waiting pods that have no place in their gang, by cause, in the order of Facts.Waiting:
// their PodGroup does not exist, or they name no leaf of it.
func FindLostPods(f Facts) []LostPods {
	var all []LostPods
	byCause := map[string]int{} // index in all
	for _, w := range f.Waiting {
		cause := w.Misplaced
		if f.Group == nil && cause == "" {
			cause = v2alpha2.EventPodGroupNotFound
		}
		if cause == "" {
			continue
		}
		i, known := byCause[cause]
		if !known {
			i = len(all)
			byCause[cause] = i
			all = append(all, LostPods{First: w.Pod, Cause: cause})
		}
		all[i].Pods++
	}
	name := message.Truncate(f.Name, message.MaxName)
	for i := range all {
		lost := &all[i]
		waits := "the pod waits"
		if lost.Pods > 1 {
			waits = fmt.Sprintf("%d pods wait", lost.Pods)
		}
		if lost.Cause == v2alpha2.EventPodGroupNotFound {
			lost.Reason = v2alpha2.EventPodGroupNotFound
			if of, made := membership.WorkloadOf(lost.First); made {
				lost.Note = fmt.Sprintf("PodGroup %q does not exist: muster-controller makes it for the kinds of its --grouped-kinds, and %s %s may be suspended, "+
					"or have an event that says why not; with label %s: \"false\" on its pod template each pod starts alone; %s",
					name, message.Truncate(of.Kind, maxShown), message.Truncate(of.Name, message.MaxName), v2alpha2.GangKey, waits)
				continue
			}
			lost.Note = nameNotFound(lost.First, f.Namespace) + clauses + waits
			continue
		}
		kind := misplacementOf(lost.Cause)
		lost.Reason = kind.event
		lost.Note = fmt.Sprintf("does not count in PodGroup %q: the pod %s: %s", name, lost.Cause, kind.advice)
		if leaves := leafNames(f.Tree); leaves != "" && lost.Reason == v2alpha2.EventSubGroupNotFound {
			lost.Note += "; " + leaves
		}
		lost.Note += "; " + waits
	}
	return all
}

// nameNotFound describes that the PodGroup that a pod names does not exist.
func nameNotFound(pod *corev1.Pod, namespace string) string {
	by, name, _ := membership.NamedBy(pod)
	kind, _, _ := strings.Cut(by.Place, " ")
	text := fmt.Sprintf("%s names PodGroup %q, and namespace %s has none of that name: create it (apiVersion %s), or correct the %s",
		by.Place, message.Truncate(name, message.MaxName), namespace, by.APIVersion, kind)
	if by.APIVersion != v2alpha2.SchemeGroupVersion.String() {
		text += "; if it is there, it has an event that says why it makes no gang, or --grouped-kinds of muster-controller lacks its kind"
	}
	return text
}
