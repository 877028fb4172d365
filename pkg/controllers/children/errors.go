package children

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/desired"
)

// Problems returns the errors of a pass as a status tells them, sorted. What only waits, and what a retry will cure
// without anybody (a conflict, an API server that is away), is not told.
func Problems(err error) []desired.Problem {
	var problems []desired.Problem
	for _, e := range flatten(err) {
		inTheWay, invalid := (*InTheWay)(nil), (*Invalid)(nil)
		p := desired.Problem{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonCreateRefused, Message: e.Error()}
		switch {
		case errors.As(e, &inTheWay):
			if inTheWay.Going {
				continue
			}
			p.Condition, p.Reason = v1alpha1.ConditionForeignObject, v1alpha1.ReasonNameTaken
		case errors.As(e, &invalid):
			p.Reason = v1alpha1.ReasonInvalidSpec
		case passes(e):
			continue
		}
		problems = append(problems, p)
	}
	slices.SortFunc(problems, func(a, b desired.Problem) int {
		return cmp.Or(cmp.Compare(a.Condition, b.Condition), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(problems)
}

// Troubles returns the conditions ReplicaFailure and ForeignObject of after that before did not have, or had with another
// message: each is worth an event, and its message is cut to what an event takes.
func Troubles(before, after []metav1.Condition) []metav1.Condition {
	var news []metav1.Condition
	for _, kind := range []string{v1alpha1.ConditionReplicaFailure, v1alpha1.ConditionForeignObject} {
		is, was := meta.FindStatusCondition(after, kind), meta.FindStatusCondition(before, kind)
		if is != nil && (was == nil || was.Message != is.Message) {
			told := *is
			told.Message = note(told.Message)
			news = append(news, told)
		}
	}
	return news
}

// note cuts a text to what the API server takes in an event: 1,024 bytes.
func note(text string) string {
	const most = 1024
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("...")], "") + "..."
}

// passes tells whether a retry is likely to cure the error without anybody doing anything.
func passes(err error) bool {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) ||
		apierrors.HasStatusCause(err, "NamespaceTerminating") {
		return true
	}
	status := apierrors.APIStatus(nil)
	return !errors.As(err, &status) // not an answer of the API server
}

// Invalid is the error of an object that cannot be acted on, because it got past admission.
type Invalid struct{ Err error }

func (e *Invalid) Error() string { return e.Err.Error() }

// flatten returns the single errors of a joined one.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, flatten(e)...)
		}
		return out
	}
	return []error{err}
}

// Outcome returns what Reconcile returns for the errors of its steps. What only waits for something to go, and a write for
// which the cache was too old, is tried again soon; what is invalid waits for its repair; the rest is retried with
// backoff. after is when to look again anyway, 0: not.
func Outcome(after time.Duration, errs ...error) (ctrl.Result, error) {
	soon := func(wait time.Duration) {
		if after == 0 || wait < after {
			after = wait
		}
	}
	var kept []error
	for _, e := range flatten(errors.Join(errs...)) {
		invalid := (*Invalid)(nil)
		switch {
		case errors.As(e, &invalid): // its repair brings an event
		case Waits(e):
			soon(Settling)
		case apierrors.IsConflict(e):
			soon(Settling / 10)
		case apierrors.IsNotFound(e):
			soon(Settling)
		default:
			kept = append(kept, e)
		}
	}
	if err := errors.Join(kept...); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: after}, nil
}
