// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/workload"
)

func TestNewFailures(t *testing.T) {
	t.Parallel()
	foreign := func(message string) []metav1.Condition {
		return []metav1.Condition{
			{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Message: "reported elsewhere"},
			{Type: v1alpha1.ConditionForeignObject, Status: metav1.ConditionTrue, Message: message},
		}
	}
	for name, tc := range map[string]struct {
		before, after []metav1.Condition
		want          []string // messages
	}{
		"none":                 {},
		"new":                  {nil, foreign("in the way"), []string{"in the way"}},
		"the same as before":   {foreign("in the way"), foreign("in the way"), nil},
		"with another message": {foreign("in the way"), foreign("another"), []string{"another"}},
		"gone":                 {foreign("in the way"), nil, nil},
		// A condition accepts more than 1,024 characters. The API server rejects an event of more than 1,024 bytes.
		"longer than an event may be": {nil, foreign(strings.Repeat("ä", 1024)), []string{strings.Repeat("ä", 510) + "..."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, c := range newFailures(tc.before, tc.after) {
				got = append(got, c.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrphansAreReportedTogether: a set that was deleted with --cascade=orphan and applied again finds all its objects
// without an owner. One message counts them and names a command that helps.
func TestOrphansAreReportedTogether(t *testing.T) {
	t.Parallel()
	orphan := func(kind, name string) error {
		return fmt.Errorf("creating: %w", &NameConflictError{Kind: kind, Name: name})
	}
	owned := &NameConflictError{Kind: "Service", Name: "a-0", Owner: "PodCliqueSet b"}
	err := errors.Join(orphan("Service", "a-0"), orphan("PodGroup", "a-1"), orphan("PodGroup", "a-0"), owned)
	set := &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	foreign := func(message string) workload.Problem {
		return workload.Problem{Condition: v1alpha1.ConditionForeignObject, Reason: v1alpha1.ReasonNameTaken, Message: message}
	}
	want := []workload.Problem{
		foreign("PodGroup a-0 exists and has no owner, like 2 other objects; they are left alone; to have them created again: " +
			"kubectl delete -n ns podgroups.scheduling.run.ai,podcliquescalinggroups,podcliques,services -l app.kubernetes.io/part-of=a"),
		foreign(owned.Error()),
	}
	if diff := cmp.Diff(want, NewClient(nil, nil).Problems(set, err, time.Now())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	err = errors.Join(orphan("Pod", "p"), orphan("Pod", "q"))
	want = []workload.Problem{foreign("Pod p exists and has no owner, like 1 other object; they are left alone; delete them to have them created again")}
	if diff := cmp.Diff(want, NewClient(nil, nil).Problems(&v1alpha1.PodClique{}, err, time.Now())); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

func TestReportedAndRetriedErrors(t *testing.T) {
	pods := corev1.Resource("pods")
	foreign := &NameConflictError{Kind: "Service", Name: "a-0"}
	going := &NameConflictError{Kind: "Service", Name: "a-0", Terminating: true}
	refused := apierrors.NewForbidden(pods, "p", errors.New("exceeded quota"))
	denied := apierrors.NewForbidden(pods, "p", errors.New(`admission webhook "policy.example" denied the request: no`))
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil)
	noRight := apierrors.NewForbidden(pods, "p", errors.New(`User "system:serviceaccount:muster-system:muster-controller" cannot create resource "pods" in API group ""`))
	webhook := apierrors.NewInternalError(errors.New(`failed calling webhook "a.example": connection refused`))
	ending := apierrors.NewForbidden(pods, "p", errors.New("unable to create new content in namespace ns because it is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace"}}
	t0 := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		err   error
		since time.Duration // an earlier pass failed with the same error
		told  []workload.Problem
		retry bool          // with backoff
		after time.Duration // otherwise
	}{
		"nothing": {},
		"a rejection is reported and retried": {
			err: fmt.Errorf("creating pod 0: %w", refused), after: firstWait,
			told: []workload.Problem{{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonCreateRefused,
				Message: "creating pod 0: " + refused.Error()}},
		},
		"the longer it is rejected, the less often it is retried": {
			err: refused, since: 20 * time.Second, after: 20 * time.Second,
			told: []workload.Problem{{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonCreateRefused, Message: refused.Error()}},
		},
		"a rejection by a webhook is not an error either": {
			err: denied, after: firstWait,
			told: []workload.Problem{{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonCreateRefused, Message: denied.Error()}},
		},
		"an invalid pod is not an error either": {
			err: invalid, after: firstWait,
			told: []workload.Problem{{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonCreateRefused, Message: invalid.Error()}},
		},
		"a missing permission of the controller is an error": {
			err: noRight, retry: true,
			told: []workload.Problem{{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonCreateRefused, Message: noRight.Error()}},
		},
		"a rejection together with an error": {
			err: errors.Join(refused, noRight), retry: true,
			told: []workload.Problem{{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonCreateRefused, Message: noRight.Error()},
				{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonCreateRefused, Message: refused.Error()}},
		},
		"an object of another owner is reported and retried": {
			err: foreign, retry: true,
			told: []workload.Problem{{Condition: v1alpha1.ConditionForeignObject, Reason: v1alpha1.ReasonNameTaken, Message: foreign.Error()}},
		},
		"a terminating object is waited for":                     {err: errors.Join(going, going), after: firstWait},
		"the longer it terminates, the less often it is retried": {err: going, since: 2 * time.Second, after: 2 * time.Second},
		"but at the latest when it must be reported":             {err: going, since: 9 * time.Second, after: time.Second},
		"an object that still exists after 10 s is reported": {err: going, since: 10 * time.Second, after: 10 * time.Second,
			told: []workload.Problem{{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonNameTerminating, Message: going.Error()}}},
		"an error that lasts is retried twice a minute": {err: going, since: time.Hour, after: LastRetry,
			told: []workload.Problem{{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonNameTerminating, Message: going.Error()}}},
		"a pass that has lasted long enough is followed by another": {err: ErrUnfinished, after: time.Millisecond},
		"but not if another error occurred": {err: errors.Join(ErrUnfinished, refused), after: firstWait,
			told: []workload.Problem{{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonCreateRefused, Message: refused.Error()}}},
		"a conflict is retried soon": {err: apierrors.NewConflict(pods, "p", errors.New("changed")), after: firstWait},
		"a missing namespace is not retried every second": {
			err: apierrors.NewNotFound(corev1.Resource("namespaces"), "ns"), since: 4 * time.Second, after: 4 * time.Second},
		"a namespace that is being deleted is not an error":            {err: fmt.Errorf("creating pod 0: %w", ending), after: firstWait},
		"the longer it is being deleted, the less often it is retried": {err: errors.Join(ending, going), since: 5 * time.Second, after: 5 * time.Second},
		"it does not hide another error":                               {err: errors.Join(ending, errors.New("connection refused")), retry: true},
		"an unavailable API server is not reported":                    {err: errors.New("connection refused"), retry: true},
		"a failing webhook is not reported for 10 s":                   {err: webhook, since: 9 * time.Second, retry: true},
		"a failing webhook is reported after 10 s": {err: webhook, since: 10 * time.Second, retry: true,
			told: []workload.Problem{{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonCreateFailed, Message: webhook.Error()}}},
		"an invalid spec is reported, and not retried": {
			err:  &InvalidError{errors.New("spec.x: bad")},
			told: []workload.Problem{{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.x: bad"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, object, key := NewClient(nil, nil), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}, types.NamespacedName{Name: "a"}
			if tc.since > 0 {
				c.Problems(object, tc.err, t0.Add(-tc.since))
				_, _ = c.Result(t.Context(), key, t0.Add(-tc.since), 0, tc.err) // its result is tested by the rows without since
			}
			if diff := cmp.Diff(tc.told, c.Problems(object, tc.err, t0)); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
			result, err := c.Result(t.Context(), key, t0, 0, tc.err)
			if (err != nil) != tc.retry || result.RequeueAfter != tc.after {
				t.Errorf("Result = %v, %v, want after %s, retry %t", result, err, tc.after, tc.retry)
			}
		})
	}
}

func TestErrorsThatDifferInDigitsAreOne(t *testing.T) {
	c, object := NewClient(nil, nil), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	t0 := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	want := []workload.Problem{{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonCreateFailed, Message: "read tcp 10.0.0.1:4000: timeout"}}
	for i := range 20 {
		got := c.Problems(object, fmt.Errorf("read tcp 10.0.0.1:%d: timeout", 4000+i), t0.Add(time.Duration(i)*time.Second))
		if i < 10 && got != nil || i >= 10 && !cmp.Equal(want, got) {
			t.Errorf("after %d s: %v", i, got)
		}
	}
	c.Problems(object, nil, t0.Add(20*time.Second))
	if got := c.Problems(object, errors.New("read tcp 10.0.0.1:1: timeout"), t0.Add(21*time.Second)); got != nil {
		t.Errorf("an error that came back is reported immediately: %v", got)
	}
}

func TestAnExactTimeSurvivesAnError(t *testing.T) {
	t0 := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	refused := apierrors.NewForbidden(corev1.Resource("pods"), "p", errors.New("exceeded quota"))
	for name, tc := range map[string]struct {
		err   error
		since time.Duration
		want  time.Duration
	}{
		"no error":                  {nil, 0, 5 * time.Second},
		"an error that is new":      {refused, 0, firstWait},
		"an error that lasts":       {refused, time.Minute, 5 * time.Second},
		"a wait that lasts":         {&NameConflictError{Terminating: true}, time.Minute, 5 * time.Second},
		"an object that is invalid": {&InvalidError{errors.New("bad")}, 0, 5 * time.Second},
	} {
		c, key := NewClient(nil, nil), types.NamespacedName{Name: "a"}
		if tc.since > 0 {
			_, _ = c.Result(t.Context(), key, t0.Add(-tc.since), time.Hour, tc.err) // checked below
		}
		if result, err := c.Result(t.Context(), key, t0, 5*time.Second, tc.err); err != nil || result.RequeueAfter != tc.want {
			t.Errorf("%s: Result = %v, %v, want after %s", name, result, err, tc.want)
		}
	}
}

// TestARefusalIsOneLineOfTheLog: a quota that rejects pods for an hour is one line in the log, and not an error. When
// it rejects again later, there is another line.
func TestARefusalIsOneLineOfTheLog(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	ctx := klog.NewContext(t.Context(), logger)
	c, key := NewClient(nil, nil), types.NamespacedName{Name: "a"}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	refused := apierrors.NewForbidden(corev1.Resource("pods"), "p", errors.New("exceeded quota: gpus, "+strings.Repeat("long, ", 100)))
	passes := 0
	for end := now.Add(time.Hour); now.Before(end); passes++ {
		result, err := c.Result(ctx, key, now, 0, refused)
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(result.RequeueAfter)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "exceeded quota: gpus") || strings.Contains(lines[0], `"error"`) || len(lines[0]) > 500 {
		t.Errorf("the log has %q, want one short line that is no error", lines)
	}
	if passes > 150 {
		t.Errorf("%d passes in an hour, want about two a minute", passes)
	}
	if _, err := c.Result(ctx, key, now, 0, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Result(ctx, key, now.Add(time.Minute), 0, refused); err != nil || len(lines) != 2 {
		t.Errorf("error %v, log %q; want a second line", err, lines)
	}
}

// TestManyErrorsAreOneFactAndOneLine: a pass over a set of many replicas may have an error for each of them. They are
// one line in the log, of a length that a log takes, and one fact for each kind of error, because all facts are
// compared.
func TestManyErrorsAreOneFactAndOneLine(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	ctx := klog.NewContext(t.Context(), logger)
	pods, now, key := corev1.Resource("pods"), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), types.NamespacedName{Name: "a"}
	var refused, failed []error
	for i := range 1000 {
		refused = append(refused, apierrors.NewForbidden(pods, fmt.Sprint("p-", i), errors.New("exceeded quota")))
		failed = append(failed, apierrors.NewInternalError(fmt.Errorf("creating p-%d: connection refused", i)))
	}

	c := NewClient(nil, nil)
	if _, err := c.Result(ctx, key, now, 0, refused...); err != nil || len(lines) != 1 {
		t.Errorf("error %v, and %d lines in the log, want one", err, len(lines))
	}
	lines = nil
	if _, err := c.Result(ctx, key, now, time.Minute, failed...); err != nil || len(lines) != 1 || len(lines[0]) > 2000 {
		t.Errorf("error %v, and the log has %d lines, want a short one", err, len(lines))
	}
	if _, err := c.Result(ctx, key, now, 0, failed...); err == nil || len(err.Error()) > 2000 || !strings.Contains(err.Error(), "990 more errors") {
		t.Errorf("the error has %d characters, want the first ones and the number of the others", len(fmt.Sprint(err)))
	}

	object := &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{UID: "a"}}
	c.Problems(object, errors.Join(failed...), now)
	if facts := len(c.passing.objects["a"].facts) + len(c.failing.objects[key.String()].facts); facts != 2 {
		t.Errorf("%d facts are remembered, want one for the status and one for the next pass", facts)
	}
	if problems := c.Problems(object, errors.Join(failed...), now.Add(toldAfter)); len(problems) != 1 {
		t.Errorf("%d problems are reported, want one", len(problems))
	}
}

// TestANamespaceThatIsBeingDeletedIsNoErrorOfTheLog: every controller ends its passes by Result. A wait of another kind
// that is due does not make it an error either.
func TestANamespaceThatIsBeingDeletedIsNoErrorOfTheLog(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	ctx := klog.NewContext(t.Context(), logger)
	ending := apierrors.NewForbidden(corev1.Resource("pods"), "p", errors.New("because it is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	c, key := NewClient(nil, nil), types.NamespacedName{Name: "a"}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, after := range []time.Duration{0, time.Minute} {
		if result, err := c.Result(ctx, key, now, after, ending); err != nil || result.RequeueAfter == 0 {
			t.Errorf("with the next pass after %s: Result = %v, %v", after, result, err)
		}
	}
	if len(lines) > 0 {
		t.Errorf("the log has %q, want nothing", lines)
	}
}

// TestIsRejection: only an answer about the object itself rejects it.
func TestIsRejection(t *testing.T) {
	t.Parallel()
	pods := corev1.Resource("pods")
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"invalid":         {apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "p", nil), true},
		"forbidden":       {apierrors.NewForbidden(pods, "p", errors.New("maximum cpu usage per Container is 1")), true},
		"denied":          {apierrors.NewBadRequest(`admission webhook "images.example" denied the request: not signed`), true},
		"no dry-run":      {apierrors.NewBadRequest(`admission webhook "images.example" does not support dry run`), false},
		"the name exists": {apierrors.NewAlreadyExists(pods, "p"), false},
		"a webhook fails": {apierrors.NewInternalError(errors.New(`failed calling webhook "images.example"`)), false},
		"too slow":        {fmt.Errorf("creating: %w", context.DeadlineExceeded), false},
		"throttled":       {apierrors.NewTooManyRequests("later", 1), false},
		"conflict":        {apierrors.NewConflict(pods, "p", errors.New("changed")), false},
	} {
		if got := IsRejection(tc.err); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
