// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/wrappers"
)

// TestStoryOfASet: the events about a set are delayed by two seconds for further changes. A loss that lasts is
// reported, also if it comes before the availability was.
func TestStoryOfASet(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	set := func(replicas, scheduled, available int32) *v1alpha1.PodCliqueSet {
		s := wrappers.MakePodCliqueSet("chat", "ml").UID("u").Replicas(replicas).Obj()
		s.Status = v1alpha1.PodCliqueSetStatus{ObservedGeneration: 1, Replicas: replicas, ScheduledReplicas: scheduled, AvailableReplicas: available}
		status := metav1.ConditionFalse
		if available >= replicas {
			status = metav1.ConditionTrue
		}
		s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAvailable, Status: status, Message: "counts"}}
		return s
	}
	inUpdate := func(s *v1alpha1.PodCliqueSet, reason string, progressing metav1.ConditionStatus) *v1alpha1.PodCliqueSet {
		s.Status.UpdateProgress = &v1alpha1.PodCliqueSetUpdateProgress{State: reason}
		s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: progressing, Reason: reason})
		return s
	}
	updating := inUpdate(set(2, 1, 1), v1alpha1.ReasonUpdating, metav1.ConditionTrue)
	upToPartition := func(available int32) *v1alpha1.PodCliqueSet {
		return inUpdate(set(3, 3, available), v1alpha1.ReasonPartitionReached, metav1.ConditionFalse)
	}
	pausedInReplica := inUpdate(set(2, 1, 1), v1alpha1.ReasonUpdatePaused, metav1.ConditionFalse)
	pausedInReplica.Status.UpdateProgress.CurrentlyUpdating = &v1alpha1.PodCliqueSetReplicaUpdateProgress{ReplicaIndex: 1}
	// reported is the set after the events about it were emitted.
	reported := func(s *v1alpha1.PodCliqueSet, state v1alpha1.AvailabilityState) *v1alpha1.PodCliqueSet {
		s.Status.Reported = &v1alpha1.ReportedAvailability{State: state, Replicas: s.Status.Replicas,
			ScheduledReplicas: s.Status.ScheduledReplicas, AvailableReplicas: s.Status.AvailableReplicas}
		return s
	}
	up := func(replicas int32) *v1alpha1.PodCliqueSet {
		return reported(set(replicas, replicas, replicas), v1alpha1.AvailabilityAvailable)
	}
	admitted := reported(set(2, 2, 0), v1alpha1.AvailabilityPending)
	// then is a set as the previous process left it: it was reported, then its status changed without an event.
	then := func(before, after *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
		after = after.DeepCopy()
		after.Status.Reported = before.Status.Reported
		return after
	}
	tests := map[string]struct {
		first  *v1alpha1.PodCliqueSet
		passes map[time.Duration]*v1alpha1.PodCliqueSet // a pass runs every half second and reads the latest of them
		want   []string
	}{
		"a set that another process has reported": {first: up(2), passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(2, 2, 2)}},
		"admitted, then available": {
			first:  &v1alpha1.PodCliqueSet{ObjectMeta: set(2, 0, 0).ObjectMeta, Spec: set(2, 0, 0).Spec},
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(2, 0, 0), time.Second: set(2, 2, 0), 5 * time.Second: set(2, 2, 2)},
			want:   []string{"3s Normal Admitted The minimums of all 2 replicas are bound", "7s Normal Available counts"},
		},
		"a replica that recovers within a second": {
			first:  up(2),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(2, 2, 2), time.Second: set(2, 1, 1), 2 * time.Second: set(2, 2, 2)},
		},
		"a replica that is lost for longer": {
			first:  up(2),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(2, 2, 2), time.Second: set(2, 1, 1), 8 * time.Second: set(2, 2, 2)},
			want:   []string{"3s Warning Degraded counts", "10s Normal Admitted The minimums of all 2 replicas are bound", "10s Normal Recovered counts"},
		},
		"a replica that is lost a second after it was available": {
			first:  admitted,
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(2, 2, 2), time.Second: set(2, 2, 1), 12 * time.Second: set(2, 2, 2)},
			want:   []string{"3s Normal Available counts", "3s Warning Degraded counts", "14s Normal Recovered counts"},
		},
		"a new set that is lost a second after it was available": {
			first:  &v1alpha1.PodCliqueSet{ObjectMeta: set(2, 0, 0).ObjectMeta, Spec: set(2, 0, 0).Spec},
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(2, 2, 2), time.Second: set(2, 0, 0), 12 * time.Second: set(2, 2, 2)},
			want: []string{"3s Normal Admitted The minimums of all 2 replicas are bound", "3s Normal Available counts", "3s Warning Degraded counts",
				"14s Normal Admitted The minimums of all 2 replicas are bound", "14s Normal Recovered counts"},
		},
		"available, lost for a second, and available": {
			first:  admitted,
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(2, 2, 2), time.Second: set(2, 2, 1), 2 * time.Second: set(2, 2, 2)},
			want:   []string{"2s Normal Available counts"},
		},
		"a loss that flaps": {
			first: up(2),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(2, 2, 1), time.Second: set(2, 2, 2), 1500 * time.Millisecond: set(2, 2, 1),
				3 * time.Second: set(2, 2, 2), 4 * time.Second: set(2, 2, 0), 5 * time.Second: set(2, 2, 1), 7 * time.Second: set(2, 2, 2)},
			want: []string{"6s Warning Degraded counts", "9s Normal Recovered counts"},
		},
		"a recovery that flaps": {
			first:  up(2),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(2, 2, 1), 5 * time.Second: set(2, 2, 2), 6 * time.Second: set(2, 2, 1)},
			want:   []string{"2s Warning Degraded counts"},
		},
		"scaled out, and the old replica is lost": {
			first:  up(1),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{time.Second: set(2, 1, 1), 8 * time.Second: set(2, 0, 0), 15 * time.Second: set(2, 1, 1)},
			want:   []string{"3s Normal Scaled Scaled from 1 to 2 replicas", "10s Warning Degraded counts"},
		},
		"a loss during an update that stays when it ends": {
			first:  up(2),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{time.Second: updating, 8 * time.Second: set(2, 1, 1)},
			want:   []string{"10s Warning Degraded counts"},
		},
		"a loss a second after the end of an update": {
			first:  admitted,
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: updating, 5 * time.Second: set(2, 2, 2), 6 * time.Second: set(2, 2, 1)},
			want:   []string{"8s Normal Available counts", "8s Warning Degraded counts"},
		},
		"an update a second after it was available": {
			first:  admitted,
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(2, 2, 2), time.Second: updating, 8 * time.Second: set(2, 2, 2)},
			want:   []string{"10s Normal Available counts"},
		},
		"a loss in an update that has reached its partition": {
			first:  reported(upToPartition(3), v1alpha1.AvailabilityAvailable),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: upToPartition(3), time.Second: upToPartition(2), 8 * time.Second: upToPartition(3)},
			want:   []string{"3s Warning Degraded counts", "10s Normal Recovered counts"},
		},
		"an update that reaches its partition": {
			first: up(3),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(3, 3, 3), time.Second: inUpdate(set(3, 2, 2), v1alpha1.ReasonWaitingForReadiness, metav1.ConditionTrue),
				8 * time.Second: upToPartition(3)},
		},
		"paused while a replica is updated": {
			first:  up(2),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(2, 2, 2), time.Second: pausedInReplica},
		},
		"a loss right after the start of the process": {
			first:  up(2),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(2, 1, 1), 12 * time.Second: set(2, 2, 2)},
			want:   []string{"2s Warning Degraded counts", "14s Normal Admitted The minimums of all 2 replicas are bound", "14s Normal Recovered counts"},
		},
		"a loss a second before the end of the previous process": {
			first:  then(up(2), set(2, 1, 1)),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{12 * time.Second: set(2, 2, 2)},
			want:   []string{"2s Warning Degraded counts", "14s Normal Admitted The minimums of all 2 replicas are bound", "14s Normal Recovered counts"},
		},
		"a loss that the previous process has reported": {
			first:  reported(set(2, 1, 1), v1alpha1.AvailabilityDegraded),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{12 * time.Second: set(2, 2, 2)},
			want:   []string{"14s Normal Admitted The minimums of all 2 replicas are bound", "14s Normal Recovered counts"},
		},
		"a recovery a second before the end of the previous process": {
			first: then(reported(set(2, 1, 1), v1alpha1.AvailabilityDegraded), set(2, 2, 2)),
			want:  []string{"2s Normal Admitted The minimums of all 2 replicas are bound", "2s Normal Recovered counts"},
		},
		"a recovery after the start of the process": {
			first:  reported(set(2, 2, 1), v1alpha1.AvailabilityDegraded),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{time.Second: set(2, 2, 2)},
			want:   []string{"3s Normal Recovered counts"},
		},
		"scaled out, and a loss a second before the end of the previous process": {
			first: then(reported(set(3, 2, 2), v1alpha1.AvailabilityUnavailable), set(3, 1, 1)),
			want:  []string{"2s Warning Degraded counts"},
		},
		"scaled out, and a loss after the start of the process": {
			first:  reported(set(3, 2, 2), v1alpha1.AvailabilityUnavailable),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{time.Second: set(3, 1, 1)},
			want:   []string{"3s Warning Degraded counts"},
		},
		"scaled out further than reported, and a loss after the start of the process": {
			first:  then(reported(set(3, 1, 1), v1alpha1.AvailabilityUnavailable), set(3, 2, 2)),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{time.Second: set(3, 1, 1)},
			want:   []string{"3s Warning Degraded counts"},
		},
		"scaled while no process ran": {
			first: then(up(1), set(2, 2, 2)),
			want:  []string{"2s Normal Scaled Scaled from 1 to 2 replicas", "2s Normal Admitted The minimums of all 2 replicas are bound"},
		},
		"scaled from 0 while no process ran": {
			first:  then(reported(set(0, 0, 0), v1alpha1.AvailabilityPending), set(0, 0, 0)),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(2, 0, 0), 3 * time.Second: set(2, 1, 1), 6 * time.Second: set(2, 0, 0)},
			want:   []string{"2s Normal Scaled Scaled from 0 to 2 replicas"},
		},
		"created while no process ran, and a loss before all are available": {
			first:  &v1alpha1.PodCliqueSet{ObjectMeta: set(2, 0, 0).ObjectMeta, Spec: set(2, 0, 0).Spec},
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(2, 1, 1), 6 * time.Second: set(2, 0, 0)},
		},
		"a loss of a set that never had room for all replicas": {first: set(5, 4, 3)},
		"a set that never had room for all replicas, and then has": {
			first:  set(5, 4, 3),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{time.Second: set(5, 4, 4), 6 * time.Second: set(5, 5, 5)},
			want:   []string{"8s Normal Admitted The minimums of all 5 replicas are bound", "8s Normal Available counts"},
		},
		"available a second before the end of the previous process": {
			first: then(admitted, set(2, 2, 2)),
			want:  []string{"2s Normal Available counts"},
		},
		"available a second before the end of the previous process, and lost": {
			first:  then(admitted, set(2, 2, 2)),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{time.Second: set(2, 2, 1), 12 * time.Second: set(2, 2, 2)},
			want:   []string{"3s Normal Available counts", "3s Warning Degraded counts", "14s Normal Recovered counts"},
		},
		"available in an update that goes on after the start of the process": {
			first:  inUpdate(up(2), v1alpha1.ReasonUpdating, metav1.ConditionTrue),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{5 * time.Second: set(2, 2, 2)},
		},
		"in the middle of an update at the start of the process": {
			first:  then(up(2), updating),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{5 * time.Second: set(2, 2, 2)},
		},
		"an update a second after it was available, and a loss when it ends": {
			first:  admitted,
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(2, 2, 2), time.Second: updating, 8 * time.Second: set(2, 2, 1)},
			want:   []string{"10s Warning Degraded counts"},
		},
		"an update": {
			first:  up(2),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(2, 2, 2), time.Second: updating, 8 * time.Second: set(2, 2, 2)},
		},
		"scaled": {
			first:  up(1),
			passes: map[time.Duration]*v1alpha1.PodCliqueSet{0: set(1, 1, 1), time.Second: set(2, 1, 1), 8 * time.Second: set(2, 2, 2)},
			want: []string{"3s Normal Scaled Scaled from 1 to 2 replicas", "10s Normal Admitted The minimums of all 2 replicas are bound",
				"10s Normal Available counts"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := events.NewFakeRecorder(100)
			r := &Reconciler{recorder: recorder}
			var got []string
			before := tc.first
			for passed := time.Duration(0); passed <= 20*time.Second; passed += time.Second / 2 {
				after := before
				if next := tc.passes[passed]; next != nil {
					after = next
				}
				wait := r.reportAvailability(before, after, start.Add(passed))
				if wait < 0 || wait > 2*time.Second {
					t.Errorf("next in %s", wait)
				}
				for len(recorder.Events) > 0 {
					got = append(got, passed.String()+" "+<-recorder.Events)
				}
				before = after
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			r.stories.Forget(types.NamespacedName{Namespace: "ml", Name: "chat"})
			if r.stories.Len() != 0 {
				t.Error("a set that is gone is remembered")
			}
		})
	}
}
