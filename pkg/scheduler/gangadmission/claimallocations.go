// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// allocations contains the ResourceClaims (types.NamespacedName) to which members that are not bound yet may have
// devices allocated. An aborted plan leaves none of them allocated (docs/decisions, G18).
type allocations struct{ claims sync.Map }

const (
	// claimsTimeout bounds the requests for the claims of one pod, or of one plan: the scheduling loop waits for them.
	claimsTimeout = 5 * time.Second
	// claimsAtOnce is how many claims of a plan are written at the same time.
	claimsAtOnce = 16
)

// claimsOf returns the ResourceClaims of a pod that exist.
func claimsOf(pod *corev1.Pod) []types.NamespacedName {
	var claims []types.NamespacedName
	for _, name := range kubescheduler.ResourceClaimsOf(pod) {
		claims = append(claims, types.NamespacedName{Namespace: pod.Namespace, Name: name})
	}
	return claims
}

// begin records the claims of a member that was assumed: devices are allocated to them now.
func (a *allocations) begin(profile kubescheduler.Profile, pod *corev1.Pod) {
	for _, claim := range claimsOf(pod) {
		if !kubescheduler.IsClaimAllocated(profile, claim) { // otherwise before the plan, or for a sibling that shares the claim
			a.claims.Store(claim, nil)
		}
	}
}

// writeSlot waits until the claims of a member may be written: their writes and the bindings of members have the same
// slots, and the same order. The caller must release the slot.
func (g *Gangs) writeSlot(ctx context.Context, pod *corev1.Pod) (release func(), err error) {
	plan := g.registry.PlanOf(pod.UID)
	if plan == nil {
		return nil, errors.New("no plan of its gang is in force")
	}
	if err := g.binds.acquire(ctx, turn{priority: plan.Priority, plan: plan.ID, index: plan.Index(pod.UID)}); err != nil {
		return nil, fmt.Errorf("waiting for a free slot: %w", context.Cause(ctx))
	}
	return g.binds.release, nil
}

// keep records that a member was bound, and uses its claims.
func (a *allocations) keep(pod *corev1.Pod) {
	for _, claim := range claimsOf(pod) {
		a.claims.Delete(claim)
	}
}

// giveBack deallocates the claims of a member that was not bound, even if its cancelled preparation made it a user of
// them. A claim that others use remains: the last of them gives it back.
func (a *allocations) giveBack(ctx context.Context, profile kubescheduler.Profile, pod *corev1.Pod) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimsTimeout)
	defer cancel()
	for _, claim := range claimsOf(pod) {
		if _, ours := a.claims.Load(claim); !ours {
			continue
		}
		if _, free := kubescheduler.DeallocateClaim(ctx, profile, claim, sets.New(pod.UID)); free {
			a.claims.Delete(claim)
		}
	}
}

// deallocateOwn deallocates claims of waiting pods that nobody else uses: an earlier attempt has left them, possibly
// with devices of a node that cannot be used now. It reports whether there were any.
func deallocateOwn(ctx context.Context, profile kubescheduler.Profile, pods ...*corev1.Pod) bool {
	ctx, cancel := context.WithTimeout(ctx, claimsTimeout)
	defer cancel()
	users, seen := usersOfClaims(pods), sets.New[types.NamespacedName]()
	var freed atomic.Bool
	var requests errgroup.Group
	requests.SetLimit(claimsAtOnce)
	for _, pod := range pods {
		for _, claim := range claimsOf(pod) {
			if seen.Has(claim) || !kubescheduler.AllocatedOnlyFor(profile, claim, users) {
				continue
			}
			seen.Insert(claim)
			requests.Go(func() error {
				if had, free := kubescheduler.DeallocateClaim(ctx, profile, claim, users); had && free {
					freed.Store(true)
				}
				return nil
			})
		}
	}
	_ = requests.Wait() // Deallocate logs errors
	return freed.Load()
}

// usersOfClaims returns the pods that have ResourceClaims.
func usersOfClaims(pods []*corev1.Pod) sets.Set[types.UID] {
	users := sets.New[types.UID]()
	for _, pod := range pods {
		if len(pod.Spec.ResourceClaims) > 0 {
			users.Insert(pod.UID)
		}
	}
	return users
}

// shareClaims gives the claims that pods of a plan share their devices and users, or none of them if too many pods
// would use one. If the plan is not carried out, the claims keep them until the next plan of the gang, which uses them,
// or fails and calls deallocateOwn.
func shareClaims(ctx context.Context, profile kubescheduler.Profile, work *gangs.Work, snapshot *kubescheduler.Snapshot, placements []placement.Placement) error {
	ctx, cancel := context.WithTimeout(ctx, claimsTimeout)
	defer cancel()
	planned := make([]*corev1.Pod, 0, len(placements))
	for _, p := range placements {
		planned = append(planned, work.Pods[p.Pod.Index])
	}
	claims := snapshot.SharedClaims(planned)
	if len(claims) == 0 {
		return nil
	}
	waiting := usersOfClaims(work.Pods)
	for i := range claims {
		if err := claims[i].CheckUsers(profile, waiting); err != nil {
			return err
		}
	}
	var requests errgroup.Group // one that fails cancels no other: what was written is seen, and can be given back
	requests.SetLimit(claimsAtOnce)
	for i := range claims {
		requests.Go(func() error { return claims[i].ReserveDevices(ctx, profile, waiting) })
	}
	return requests.Wait()
}
