// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/snapshot"
	"github.com/muster-project/muster/pkg/workload"
)

// SetState is what muster-controller has written about a PodCliqueSet and what it is made of.
type SetState struct {
	Name  string `json:"name"`
	Phase string `json:"phase,omitempty"`
	// Unavailable is why it is not available, Update what an update waits for that is not complete, Failed why it has
	// failed. "": it is available, there is no such update, it has not failed.
	Unavailable string `json:"unavailable,omitempty"`
	Update      string `json:"update,omitempty"`
	Failed      string `json:"failed,omitempty"`
	// Outdated: muster-controller has not yet seen the last change of the set.
	Outdated bool `json:"outdated,omitempty"`
	// Breaches are the parts below their minimums, those that are terminated first at the beginning.
	Breaches []Breach `json:"breaches,omitempty"`
	// Replaced are the replicas that were replaced, the latest first.
	Replaced []Replaced `json:"replaced,omitempty"`

	parts map[string]lifecyclePart // by the name of the group in the tree of a gang, or that of the gang
}

// Breach is a PodClique, or a PodCliqueScalingGroup, that was available and is below its minimum.
type Breach struct {
	Object string    `json:"object"` // "PodClique chat-0-router"
	Since  time.Time `json:"since"`
	// Deadline is when its replica, or a replica of it, is terminated. nil: it is not, there is no terminationDelay.
	Deadline *time.Time `json:"deadline,omitempty"`
	Message  string     `json:"message,omitempty"`
}

// Replaced is a replica of the set, or of a scaling group, in another attempt than the first.
type Replaced struct {
	Replica string    `json:"replica"` // "chat-0", "chat-0-model-1"
	Attempt int32     `json:"attempt"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
	// AvailableAt is when it became available in this attempt. nil: it has not.
	AvailableAt *time.Time `json:"availableAt,omitempty"`
}

// lifecyclePart is what a row of a tree says about a part of a PodCliqueSet.
type lifecyclePart struct {
	BreachedSince *time.Time `json:"breachedSince,omitempty"`
	// TerminationDeadline is when the part, or what it is in, is terminated because of the breach.
	TerminationDeadline *time.Time `json:"terminationDeadline,omitempty"`
	// Attempt is the number of times that the replica was replaced.
	Attempt int32 `json:"attempt,omitempty"`
	// Updated is the number of its pods, or replicas, with the current template. nil: no update is under way.
	Updated *int32 `json:"updated,omitempty"`
}

// setOf returns the state of the PodCliqueSet that a gang is a replica of. nil: it is of none, or of one that could not
// be read.
func (w *world) setOf(key gangs.Key) *SetState {
	facts, _ := w.Offline.Facts(key)
	if facts.Group == nil {
		return nil
	}
	owner := metav1.GetControllerOf(facts.Group)
	if owner == nil || owner.Kind != v1alpha1.KindPodCliqueSet {
		return nil
	}
	for _, set := range snapshot.All[*v1alpha1.PodCliqueSet](w.snapshot) {
		if set.Namespace == key.Namespace && set.UID == owner.UID {
			if w.sets[set.UID] == nil {
				w.sets[set.UID] = w.setState(set)
			}
			return w.sets[set.UID]
		}
	}
	return nil
}

// setState returns the state of a PodCliqueSet.
func (w *world) setState(set *v1alpha1.PodCliqueSet) *SetState {
	status := &set.Status
	x := &SetState{Name: set.Name, Phase: string(status.Phase), Outdated: status.ObservedGeneration < set.Generation, parts: map[string]lifecyclePart{}}
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionFailed); c != nil && c.Status == metav1.ConditionTrue {
		x.Failed = reasonAndMessage(c)
	} else if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAvailable); c != nil && c.Status != metav1.ConditionTrue {
		x.Unavailable = cmp.Or(c.Message, c.Reason)
	}
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
	updates := c != nil && c.Reason != v1alpha1.ReasonUpdateComplete
	if updates {
		x.Update = reasonAndMessage(c)
	}
	x.addAttempts(set.Name, status.ReplicaAttempts)
	for _, g := range snapshot.All[*v1alpha1.PodCliqueScalingGroup](w.snapshot) {
		if !isOfSet(g, set) {
			continue
		}
		x.addPart(v1alpha1.KindPodCliqueScalingGroup, g.Name, g.Status.Conditions, g.Status.MinAvailableBreachedSince, g.Status.TerminationDeadline, updatedOf(updates, g.Status.UpdatedReplicas))
		x.addAttempts(g.Name, g.Status.ReplicaAttempts)
	}
	for _, c := range snapshot.All[*v1alpha1.PodClique](w.snapshot) {
		if isOfSet(c, set) {
			x.addPart(v1alpha1.KindPodClique, c.Name, c.Status.Conditions, c.Status.MinAvailableBreachedSince, c.Status.TerminationDeadline, updatedOf(updates, c.Status.UpdatedReplicas))
		}
	}
	slices.SortStableFunc(x.Breaches, func(a, b Breach) int {
		return cmp.Or(deadlineOf(&a).Compare(deadlineOf(&b)), a.Since.Compare(b.Since), cmp.Compare(a.Object, b.Object))
	})
	slices.SortStableFunc(x.Replaced, func(a, b Replaced) int { return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(a.Replica, b.Replica)) })
	return x
}

// deadlineOf returns the deadline of a breach, and later than any if there is none.
func deadlineOf(b *Breach) time.Time {
	if b.Deadline == nil {
		return time.Unix(1<<40, 0)
	}
	return *b.Deadline
}

// whyNoGang returns why a PodCliqueSet has no PodGroup.
func (w *world) whyNoGang(set *v1alpha1.PodCliqueSet) string {
	x := w.setState(set)
	switch {
	case set.Status.ObservedGeneration == 0:
		return "it has no status; muster-controller does not run, or leaves it to another controller"
	case x.Failed != "":
		return "it has failed: " + x.Failed
	case set.Spec.Replicas == 0:
		return "its spec.replicas is 0"
	}
	return cmp.Or(x.Unavailable, "muster-controller has made no PodGroup")
}

// isOfSet reports whether an object was created for the set.
func isOfSet(o client.Object, set *v1alpha1.PodCliqueSet) bool {
	return o.GetNamespace() == set.Namespace && o.GetLabels()[v1alpha1.LabelPartOf] == set.Name
}

func updatedOf(updates bool, n int32) *int32 {
	if !updates {
		return nil
	}
	return &n
}

func reasonAndMessage(c *metav1.Condition) string {
	return strings.TrimSuffix(c.Reason+": "+c.Message, ": ") // an anonymized snapshot has no messages
}

// addPart adds what the status of an object says that is a group in the tree of its gang.
func (x *SetState) addPart(kind, name string, conditions []metav1.Condition, since, deadline *metav1.Time, updated *int32) {
	p := x.parts[name]
	p.Updated = updated
	if begun := workload.BreachedSince(conditions, since); !begun.IsZero() {
		p.BreachedSince = &begun
		b := Breach{Object: kind + " " + name, Since: begun, Message: meta.FindStatusCondition(conditions, v1alpha1.ConditionMinAvailableBreached).Message}
		if deadline != nil {
			p.TerminationDeadline, b.Deadline = &deadline.Time, &deadline.Time
		}
		x.Breaches = append(x.Breaches, b)
	}
	x.parts[name] = p
}

// addAttempts adds the attempts of the replicas of an object; the name of a replica is that of the object with the
// index.
func (x *SetState) addAttempts(name string, attempts []v1alpha1.ReplicaAttempt) {
	for _, a := range attempts {
		r := Replaced{Replica: naming.PodGroupName(name, int(a.Index)), Attempt: a.Attempt, Reason: a.Reason, Message: a.Message, Since: a.StartedAt.Time}
		if a.AvailableAt != nil {
			r.AvailableAt = &a.AvailableAt.Time
		}
		x.Replaced = append(x.Replaced, r)
		p := x.parts[r.Replica]
		p.Attempt = a.Attempt
		x.parts[r.Replica] = p
	}
}

// state returns what a row of a tree says about the part, beside the state of its pods.
func (p *lifecyclePart) state(now time.Time) string {
	text := ""
	if p.BreachedSince != nil {
		text += ", breach " + age(*p.BreachedSince, now) + describeDeadline(p.TerminationDeadline, now)
	}
	if p.Updated != nil {
		text += fmt.Sprintf(", %d updated", *p.Updated)
	}
	if p.Attempt > 0 {
		text += fmt.Sprintf(", attempt %d", p.Attempt)
	}
	return text
}

// describeDeadline says when a deadline is, after a comma; "": there is none.
func describeDeadline(deadline *time.Time, now time.Time) string {
	switch {
	case deadline == nil:
		return ""
	case !deadline.After(now):
		return ", its end is due"
	}
	return ", ends in " + age(now, *deadline)
}

// printSet prints what there is to say about a PodCliqueSet. nil: nothing.
func (o *options) printSet(w io.Writer, x *SetState, now time.Time) {
	if x == nil {
		return
	}
	var lines []string
	if x.Outdated {
		lines = append(lines, "muster-controller has not yet seen the last change of "+x.Name)
	}
	for _, s := range []struct{ what, text string }{{"has failed", x.Failed}, {"is not available", x.Unavailable}, {"is not updated", x.Update}} {
		if s.text != "" {
			lines = append(lines, fmt.Sprintf("%s %s: %s", x.Name, s.what, s.text))
		}
	}
	for _, b := range x.Breaches[:min(len(x.Breaches), maxListed)] {
		counts, _, _ := strings.Cut(b.Message, ", since ") // the times are said already
		end := cmp.Or(describeDeadline(b.Deadline, now), ", and does not end: it has no terminationDelay")
		lines = append(lines, fmt.Sprintf("%s has been below its minimum for %s%s: %s", b.Object, age(b.Since, now), end, counts))
	}
	if more := len(x.Breaches) - maxListed; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more parts", more))
	}
	shown := 0
	for _, r := range x.Replaced {
		if r.AvailableAt == nil && shown < maxListed {
			shown++
			why := strings.TrimSuffix(r.Reason+": "+message.FirstClause(r.Message), ": ")
			lines = append(lines, fmt.Sprintf("%s was replaced %s ago (attempt %d), and has not been available since: %s", r.Replica, age(r.Since, now), r.Attempt, why))
		}
	}
	o.section(w, "set", lines...)
}
