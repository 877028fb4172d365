// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// maxOwners is the maximum number of owners returned: a gang of bare ReplicaSets may have one for each pod.
const maxOwners = 10

// SucceededControllers returns the controllers of the succeeded pods of a gang ("" for none), and when the newest of
// these pods was created. It visits all members.
func (r *Registry) SucceededControllers(key Key) (controllers sets.Set[types.UID], newest time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	controllers = sets.New[types.UID]()
	g := r.gangs[key]
	if g == nil {
		return controllers, newest
	}
	for _, m := range g.members {
		if m.state != count.Succeeded {
			continue
		}
		controllers.Insert(count.Controller(m.pod))
		newest = later(newest, m.pod.CreationTimestamp.Time)
	}
	return controllers, newest
}

// Owners returns the controllers of the existing pods of a gang, sorted by kind and name, at most 10; their objects
// were not read. It visits all members and is not part of Facts, because only a gang that has lacked pods for a while
// needs it. An unknown gang has none.
func (r *Registry) Owners(key Key) []podgroup.Owner {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.gangs[key]
	if g == nil {
		return nil
	}
	found := map[types.UID]*podgroup.Owner{}
	for _, m := range g.members {
		ref := metav1.GetControllerOfNoCopy(m.pod)
		if ref == nil || m.entry.Share().Flags&count.IsLive == 0 || m.pod.Status.Phase == corev1.PodFailed {
			continue
		}
		o := found[ref.UID]
		if o == nil {
			o = &podgroup.Owner{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID, Leaf: m.leaf}
			found[ref.UID] = o
		}
		o.Mixed = o.Mixed || m.misplaced != "" || m.leaf != o.Leaf
		if created := m.pod.CreationTimestamp.Time; o.Pods == 0 || created.Before(o.Since) {
			o.Since = created
		}
		o.Pods++
	}
	out := make([]podgroup.Owner, 0, len(found))
	for _, o := range found {
		out = append(out, *o)
	}
	slices.SortFunc(out, func(a, b podgroup.Owner) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return out[:min(len(out), maxOwners)]
}
