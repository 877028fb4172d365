// SPDX-License-Identifier: Apache-2.0

package podlife

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/workload"
)

var bound = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// inWords returns what a pod's status says: phase, whether it is ready or terminating, and its containers.
func inWords(pod *corev1.Pod) string {
	words := []string{string(pod.Status.Phase)}
	if workload.IsReady(pod) {
		words = append(words, "ready")
	}
	if pod.DeletionTimestamp != nil {
		words = append(words, "terminating")
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch {
		case s.State.Running != nil:
			words = append(words, s.Name+" running")
		case s.State.Terminated != nil:
			words = append(words, fmt.Sprintf("%s exited %d", s.Name, s.State.Terminated.ExitCode))
		case s.State.Waiting != nil:
			words = append(words, s.Name+" "+s.State.Waiting.Reason)
		}
	}
	return strings.Join(words, " ")
}

// change is what somebody does to a pod or to its program.
type change struct {
	at time.Duration
	do func(*corev1.Pod, *Program)
}

func deleteWith(graceSeconds int64) func(*corev1.Pod, *Program) {
	return func(pod *corev1.Pod, _ *Program) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: bound}, &graceSeconds
	}
}

// livesOf returns all that a pod with this program is, with the times.
func livesOf(pod *corev1.Pod, program Program, changes []change) []string {
	var life Life
	now := bound
	life.See(pod, program, now)
	lines := []string{"+0s " + inWords(pod)}
	for range 20 {
		event, ok := life.Next(pod, program)
		gone := false
		switch {
		case len(changes) > 0 && (!ok || !event.At.Before(bound.Add(changes[0].at))):
			now = bound.Add(changes[0].at)
			changes[0].do(pod, &program)
			changes = changes[1:]
		case !ok:
			return lines
		default:
			if event.At.After(now) {
				now = event.At
			}
			if event.Report != nil {
				event.Report(pod, metav1.NewTime(now))
			}
			gone = event.Gone
		}
		life.See(pod, program, now)
		line := fmt.Sprintf("+%s %s", now.Sub(bound), inWords(pod))
		if gone {
			return append(lines, line, "gone")
		}
		lines = append(lines, line)
	}
	return append(lines, "and so on")
}

func TestLifeOfAPod(t *testing.T) {
	t.Parallel()
	const second = time.Second
	reported := func(p Program) Program { p.StopCode = new(int32(143)); return p }
	evicted := func(pod *corev1.Pod, _ *Program) {
		pod.Status.Phase = corev1.PodFailed
		SetReady(pod, false, metav1.Time{})
	}
	unready := func(pod *corev1.Pod, _ *Program) { SetReady(pod, false, metav1.Time{}) }
	sick := func(is bool) func(*corev1.Pod, *Program) { return func(_ *corev1.Pod, p *Program) { p.Unready = is } }
	for name, tc := range map[string]struct {
		program Program
		inits   []corev1.Container
		changes []change
		want    []string
	}{
		"runs and is ready immediately": {want: []string{"+0s Pending", "+0s Running ready main running"}},
		"each state takes time": {
			program: Program{AcceptedAfter: second, StartsAfter: 2 * second, ReadyAfter: 3 * second},
			want:    []string{"+0s Pending", "+1s Pending main ContainerCreating", "+3s Running main running", "+6s Running ready main running"},
		},
		"after its init containers": {
			inits: []corev1.Container{{Name: "init"}},
			want:  []string{"+0s Pending", "+0s Running ready init exited 0 main running"},
		},
		"is started when it is no longer held": {
			program: Program{Held: true}, changes: []change{{second, func(_ *corev1.Pod, p *Program) { p.Held = false }}},
			want: []string{"+0s Pending", "+1s Pending", "+1s Running ready main running"},
		},
		"waits for its image": {program: Program{Unpullable: true}, want: []string{"+0s Pending", "+0s Pending main ErrImagePull"}},
		"is ready for a while, and once": {
			program: Program{UnreadyAfter: 2 * second},
			want:    []string{"+0s Pending", "+0s Running ready main running", "+2s Running main running"},
		},
		"readiness fails, and passes": {
			changes: []change{{second, sick(true)}, {3 * second, sick(false)}},
			want: []string{"+0s Pending", "+0s Running ready main running", "+1s Running ready main running", "+1s Running main running",
				"+3s Running main running", "+3s Running ready main running"},
		},
		"never becomes ready": {program: Program{Unready: true}, want: []string{"+0s Pending", "+0s Running main running"}},
		"is ready again after somebody else says that it is not": {
			changes: []change{{second, unready}},
			want:    []string{"+0s Pending", "+0s Running ready main running", "+1s Running main running", "+1s Running ready main running"},
		},
		"ends by itself": {
			program: Program{StartsAfter: second, ExitCode: new(int32(0)), ExitsAfter: 5 * second},
			want:    []string{"+0s Pending", "+0s Pending main ContainerCreating", "+1s Running ready main running", "+6s Succeeded main exited 0"},
		},
		"fails as somebody decides while it runs": {
			changes: []change{{4 * second, func(_ *corev1.Pod, p *Program) { p.ExitCode = new(int32(3)) }}},
			want:    []string{"+0s Pending", "+0s Running ready main running", "+4s Running ready main running", "+4s Failed main exited 3"},
		},
		"nothing of it runs any more when it has failed": {
			program: Program{ExitCode: new(int32(0)), ExitsAfter: 5 * second}, changes: []change{{second, evicted}},
			want: []string{"+0s Pending", "+0s Running ready main running", "+1s Failed main running"},
		},
		"deleted": {
			program: reported(Program{StopsAfter: 2 * second}), changes: []change{{second, deleteWith(30)}},
			want: []string{"+0s Pending", "+0s Running ready main running", "+1s Running ready terminating main running", "+3s Failed terminating main exited 143", "gone"},
		},
		"deleted, and its exit is not reported": {
			program: Program{StopsAfter: 2 * second}, changes: []change{{second, deleteWith(30)}},
			want: []string{"+0s Pending", "+0s Running ready main running", "+1s Running ready terminating main running", "+3s Running ready terminating main running", "gone"},
		},
		"killed when its grace period is over": {
			program: reported(Program{StopsAfter: time.Hour}), changes: []change{{second, deleteWith(30)}},
			want: []string{"+0s Pending", "+0s Running ready main running", "+1s Running ready terminating main running", "+31s Failed terminating main exited 137", "gone"},
		},
		"killed sooner after a deletion with a shorter grace period": {
			program: reported(Program{StopsAfter: time.Hour}), changes: []change{{second, deleteWith(30)}, {3 * second, deleteWith(5)}},
			want: []string{"+0s Pending", "+0s Running ready main running", "+1s Running ready terminating main running",
				"+3s Running ready terminating main running", "+6s Failed terminating main exited 137", "gone"},
		},
		"ends by itself before SIGTERM ends it": {
			program: reported(Program{StopsAfter: 20 * second, ExitCode: new(int32(0)), ExitsAfter: 5 * second}), changes: []change{{second, deleteWith(30)}},
			want: []string{"+0s Pending", "+0s Running ready main running", "+1s Running ready terminating main running",
				"+5s Succeeded terminating main exited 0", "+5s Succeeded terminating main exited 0", "gone"},
		},
		"stuck beyond its grace period": {
			program: reported(Program{Stuck: true}),
			changes: []change{{second, deleteWith(1)}, {5 * second, func(_ *corev1.Pod, p *Program) { p.Stuck = false }}},
			want: []string{"+0s Pending", "+0s Running ready main running", "+1s Running ready terminating main running",
				"+5s Running ready terminating main running", "+5s Failed terminating main exited 143", "gone"},
		},
		"deleted by force, and kept by a finalizer": {
			program: reported(Program{StopsAfter: time.Hour}), changes: []change{{second, deleteWith(0)}},
			want: []string{"+0s Pending", "+0s Running ready main running", "+1s Running ready terminating main running", "+1s Failed terminating main exited 137", "gone"},
		},
		"deleted before it starts": {
			program: reported(Program{Held: true}), changes: []change{{second, deleteWith(30)}},
			want: []string{"+0s Pending", "+1s Pending terminating", "+1s Failed terminating main exited 137", "gone"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{
				Spec:   corev1.PodSpec{InitContainers: tc.inits, Containers: []corev1.Container{{Name: "main"}}},
				Status: corev1.PodStatus{Phase: corev1.PodPending},
			}
			if diff := cmp.Diff(tc.want, livesOf(pod, tc.program, tc.changes)); diff != "" {
				t.Errorf("what it was differs (-want +got):\n%s", diff)
			}
		})
	}
}
