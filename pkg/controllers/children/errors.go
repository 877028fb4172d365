// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/workload"
)

// NameConflictError is the error of Create when the name is taken by an object of another owner.
type NameConflictError struct {
	Kind, Name string
	// Terminating: the object is being deleted, or its owner is gone. The desired object can be created when it is
	// gone.
	Terminating bool
	// Owner is "Kind name" of the controlling owner, "" if there is none.
	Owner string
}

func (e *NameConflictError) Error() string {
	switch {
	case e.Terminating:
		return fmt.Sprintf("%s %s is being deleted; its successor is made when it is gone", e.Kind, e.Name)
	case e.Owner != "":
		return fmt.Sprintf("%s %s belongs to %s and is left alone; delete it, or give one of the two another name", e.Kind, e.Name, e.Owner)
	default:
		return fmt.Sprintf("%s %s exists and has no owner; it is left alone; delete it to have it created again", e.Kind, e.Name)
	}
}

// InvalidError is the error of an object that cannot be reconciled because it is invalid, although it passed admission.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return e.Err.Error() }

// toldAfter is how long a transient error must last before it is written to a status.
const toldAfter = 10 * time.Second

// Problems returns the errors of a pass over an object for its status, sorted. A rejected request, an invalid object
// and a name with another owner are reported immediately. Errors that may pass without an action by a user are
// reported after they have lasted for toldAfter: an object with a required name that is being deleted, a conflict, or
// a failing webhook or API server. The Client remembers these errors from pass to pass; errors whose texts differ only
// in digits (a port, a time) are the same.
func (c *Client) Problems(object client.Object, err error, now time.Time) []workload.Problem {
	var problems []workload.Problem
	var passing []Fact
	var orphans []*NameConflictError
	var orphan workload.Problem    // one message is about all of them
	reasons := map[string]string{} // of transient errors, by key
	for _, e := range flatten(err) {
		conflict, invalid := (*NameConflictError)(nil), (*InvalidError)(nil)
		p := workload.Problem{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonCreateRefused, Message: e.Error()}
		switch {
		case errors.Is(e, ErrUnfinished):
			continue
		case errors.As(e, &conflict) && conflict.Terminating:
			p.Reason = v1alpha1.ReasonNameTerminating
		case errors.As(e, &conflict):
			p.Condition, p.Reason = v1alpha1.ConditionForeignObject, v1alpha1.ReasonNameTaken
			if conflict.Owner == "" {
				orphans, orphan = append(orphans, conflict), p
				continue
			}
		case errors.As(e, &invalid):
			p.Reason = v1alpha1.ReasonInvalidSpec
		case isTransient(e):
			p.Reason = v1alpha1.ReasonCreateFailed
		}
		if p.Reason != v1alpha1.ReasonNameTerminating && p.Reason != v1alpha1.ReasonCreateFailed {
			problems = append(problems, p)
			continue
		}
		key := WithoutDigits(p.Message)
		passing, reasons[key] = append(passing, Fact{Key: key, Text: p.Message}), p.Reason
	}
	for _, f := range c.passing.Observe(string(object.GetUID()), now, passing...) {
		if now.Sub(f.Since) >= toldAfter {
			problems = append(problems, workload.Problem{Condition: v1alpha1.ConditionReplicaFailure, Reason: reasons[f.Key], Message: f.Text})
		}
	}
	if len(orphans) > 1 {
		first := slices.MinFunc(orphans, func(a, b *NameConflictError) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
		})
		orphan.Message = fmt.Sprintf("%s %s exists and has no owner, like %s; they are left alone%s",
			first.Kind, first.Name, message.Count(len(orphans)-1, "other object"), deleteOrphans(object))
	}
	if len(orphans) > 0 {
		problems = append(problems, orphan)
	}
	slices.SortFunc(problems, func(a, b workload.Problem) int {
		return cmp.Or(cmp.Compare(a.Condition, b.Condition), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(problems)
}

// deleteOrphans returns the end of a sentence that says how several objects without an owner are created again. For a
// PodCliqueSet it is a command: the set of the same name was deleted with --cascade=orphan, and left others, too.
func deleteOrphans(object client.Object) string {
	if _, isSet := object.(*v1alpha1.PodCliqueSet); !isSet {
		return "; delete them to have them created again"
	}
	return fmt.Sprintf("; to have them created again: kubectl delete -n %s podgroups.scheduling.run.ai,podcliquescalinggroups,podcliques,services -l %s=%s",
		object.GetNamespace(), v1alpha1.LabelPartOf, object.GetName())
}

// WithoutDigits returns a text without its digits.
func WithoutDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
}

// newFailures returns the conditions ReplicaFailure and ForeignObject in after that are not in before, or have another
// message there. Their messages are shortened to the maximum length for an event.
func newFailures(before, after []metav1.Condition) []metav1.Condition {
	var failures []metav1.Condition
	for _, kind := range []string{v1alpha1.ConditionReplicaFailure, v1alpha1.ConditionForeignObject} {
		is, was := meta.FindStatusCondition(after, kind), meta.FindStatusCondition(before, kind)
		if is != nil && (was == nil || was.Message != is.Message) {
			failure := *is
			failure.Message = note(failure.Message)
			failures = append(failures, failure)
		}
	}
	return failures
}

// note shortens a text to the length that the API server accepts in an event: 1,024 bytes.
func note(text string) string {
	const maxLength = 1024
	if len(text) <= maxLength {
		return text
	}
	return strings.ToValidUTF8(text[:maxLength-len("...")], "") + "..."
}

// isTransient reports whether a retry is likely to succeed without any action by a user.
func isTransient(err error) bool {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) ||
		isNamespaceTerminating(err) {
		return true
	}
	status := apierrors.APIStatus(nil)
	return !errors.As(err, &status) // not a response of the API server
}

// isNamespaceTerminating reports whether an object cannot be created because its namespace is being deleted. The object
// that needs it is deleted with the namespace.
func isNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// IsRejection reports whether an error of a request to create an object with dry-run says that the object cannot be
// created. Other errors say nothing about it: it is unknown to a webhook that does not support dry-run, for instance.
func IsRejection(err error) bool {
	return !isTransient(err) && !apierrors.IsAlreadyExists(err) && !strings.Contains(err.Error(), "does not support dry run")
}

// IsRefusal reports whether admission rejects an object: a quota, a limit range, a policy or a webhook. The status
// reports the rejection to the user, who can resolve it; it is not an error of the controller, unlike a missing
// permission.
func IsRefusal(err error) bool {
	if isTransient(err) {
		return false
	}
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) && !lacksRight.MatchString(err.Error())
}

// lacksRight matches the message of the API server when its authorizer rejects a request.
var lacksRight = regexp.MustCompile(`User ".*" cannot \w+ resource`)

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

// Result returns the result of Reconcile for the object with the given name, given the errors of its steps. Errors are
// retried with backoff. Requests that admission rejects are retried as well, but are logged once and are not errors;
// those of a namespace that is being deleted are not logged. An invalid object is not retried until it is changed.
// after is the time until the next regular pass, 0: none; errors do not change that time.
func (c *Client) Result(ctx context.Context, name types.NamespacedName, now time.Time, after time.Duration, errs ...error) (ctrl.Result, error) {
	var failed, refused []error
	var kinds []Fact // of errors
	unfinished := false
	for _, e := range flatten(errors.Join(errs...)) {
		conflict, invalid := (*NameConflictError)(nil), (*InvalidError)(nil)
		switch {
		case errors.As(e, &invalid): // a change of the object is an event
		case errors.Is(e, ErrUnfinished):
			unfinished = true
		case errors.As(e, &conflict) && conflict.Terminating, isNamespaceTerminating(e):
			kinds = append(kinds, Fact{Key: "terminating"})
		case apierrors.IsConflict(e):
			kinds = append(kinds, Fact{Key: "conflict"})
		case apierrors.IsNotFound(e):
			kinds = append(kinds, Fact{Key: "not found"})
		case IsRefusal(e):
			kinds, refused = append(kinds, Fact{Key: keyRefused}), append(refused, e)
		default:
			kinds, failed = append(kinds, Fact{Key: "failed"}), append(failed, e)
		}
	}
	observed := c.failing.Observe(name.String(), now, kinds...)
	if unfinished && len(observed) == 0 {
		c.unfinished.Observe(name.String(), now, Fact{})
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil
	}
	c.unfinished.Observe(name.String(), now)
	err := joinFirst(failed)
	if err != nil && after == 0 {
		return ctrl.Result{}, err // the queue retries with the same delays, and counts the retries
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to reconcile some objects")
	}
	for _, f := range observed {
		if f.Key == keyRefused && f.Since.Equal(now) {
			klog.FromContext(ctx).Info("Waiting for the API server to accept what it refuses", "reason", message.Truncate(refused[0].Error(), maxLogged), "refusals", len(refused))
		}
		if delay := retryDelay(now.Sub(f.Since)); after == 0 || delay < after {
			after = delay
		}
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// joinFirst joins errors, at most maxJoined of them and the number of the others. nil if there are none.
func joinFirst(errs []error) error {
	if more := len(errs) - maxJoined; more > 0 {
		errs = append(errs[:maxJoined:maxJoined], errors.New("and "+message.Count(more, "more error")))
	}
	return errors.Join(errs...)
}

const (
	// maxJoined is the maximum number of errors of a pass in the log.
	maxJoined = 10
	// keyRefused is the key of rejections by admission.
	keyRefused = "refused"
	// maxLogged is the maximum number of characters of a rejection in the log. The condition contains all of them.
	maxLogged = 300
)

// retryDelay returns the delay before the next retry, given how long the error has lasted. It equals that time, so
// that the delays double, from firstWait to LastRetry. A retry is due when toldAfter has passed.
func retryDelay(lasted time.Duration) time.Duration {
	delay := min(max(lasted, firstWait), LastRetry)
	if left := toldAfter - lasted; left > 0 {
		delay = min(delay, max(left, firstWait))
	}
	return delay
}

// firstWait is the first delay. A cache that is behind catches up in less time.
const firstWait = 100 * time.Millisecond
