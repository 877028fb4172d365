// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/workload"
)

var update = flag.Bool("update", false, "write the golden timelines anew")

// Timeline records the events of a cluster as lines of text with the virtual time. Events of one second about several
// objects of one kind, or about several pods of one owner, are one line.
//
//	+0s    PodCliqueSet chat created
//	+1s    Pods chat-0-router-0, chat-0-worker-{0..3} started
//	+3s    Pods chat-0-router (1 of 1), chat-0-worker (4 of 4) ready
//	+4s    PodCliques chat-0-router, chat-0-worker: Available is True (SufficientReadyPods)
//
// It implements the recorder of events of the controllers.
type Timeline struct {
	api   *API
	begin time.Time

	mu      sync.Mutex
	written []string // guarded by mu, as all fields below
	second  int64    // of entries
	entries []*entry // of the second that is not written yet
	settled int      // number of entries of steps that are over
	pods    map[types.UID]*corev1.Pod
	wanted  map[string]int32 // replicas of PodCliques, by namespace and name
}

// entry is one line that is not written yet.
type entry struct {
	subject string   // "PodClique chat-0-worker", or a kind alone for a list of names
	verb    string   // what happened
	names   []string // of the objects concerned; for pods, the indices
	count   int
	was, is string // for conditions: the value before the second, and at its end
	note    string
	ready   bool   // "n of m pods ready", counted when it is written
	clique  string // the key for that
}

func newTimeline(api *API, begin time.Time) *Timeline {
	l := &Timeline{api: api, begin: begin, pods: map[types.UID]*corev1.Pod{}, wanted: map[string]int32{}}
	api.watch(l.see)
	return l
}

// see records a change.
func (l *Timeline) see(c Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.move()
	if c.GVK.Kind == "Pod" {
		old, _ := c.Old.(*corev1.Pod)
		now, _ := c.New.(*corev1.Pod)
		l.seePod(old, now)
		return
	}
	name := c.Key.Name
	switch {
	case c.Old == nil:
		l.add(c.GVK.Kind, "created", name)
	case c.New == nil && c.Old.GetDeletionTimestamp() != nil:
		l.add(c.GVK.Kind, "gone", name)
	case c.New == nil:
		l.add(c.GVK.Kind, "deleted", name)
	case c.Old.GetDeletionTimestamp() == nil && c.New.GetDeletionTimestamp() != nil:
		l.add(c.GVK.Kind, "terminating", name)
	}
	if clique, ok := c.New.(*v1alpha1.PodClique); ok {
		l.wanted[c.Key.String()] = clique.Spec.Replicas
	}
	if c.New != nil {
		l.seeValues(c)
	}
}

// seeValues records values that have changed, and those that are gone, in the order of their names.
func (l *Timeline) seeValues(c Change) {
	before := map[string]string{}
	if c.Old != nil {
		for _, v := range valuesOf(c.Old) {
			before[v.name] = v.is
		}
	}
	record := func(name, was, is string) {
		if name == breached {
			was = cmp.Or(was, notBreached)
		}
		if was != is && (is != "" || was != notBreached) {
			l.entryOf(c.GVK.Kind+" "+c.Key.Name, name, was).is = is
		}
	}
	for _, v := range valuesOf(c.New) {
		if v.name != "replicas" || c.Old != nil {
			record(v.name, before[v.name], v.is)
		}
		delete(before, v.name)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		record(name, before[name], "")
	}
}

// value is a value of an object whose changes are recorded.
type value struct{ name, is string }

const (
	// ofCondition is the prefix of the names of conditions; pods of a PodClique can be Succeeded too.
	ofCondition = "condition "
	breached    = ofCondition + v1alpha1.ConditionMinAvailableBreached
	// notBreached is the value of MinAvailableBreached False, whatever its reason; an absent condition counts as this
	// too.
	notBreached = "False"
)

// valuesOf returns the values of an object: spec.replicas, the phase of a Training workload, and its conditions.
func valuesOf(o client.Object) []value {
	var values []value
	if replicas := reflect.Indirect(fieldOf(o, "Spec", "Replicas")); replicas.IsValid() {
		values = append(values, value{"replicas", fmt.Sprint(replicas.Interface())})
	}
	if set, ok := o.(*v1alpha1.PodCliqueSet); ok && set.Spec.WorkloadType == v1alpha1.WorkloadTypeTraining {
		values = append(values, value{"phase", string(set.Status.Phase)})
	}
	for _, c := range conditions(o) {
		is := string(c.Status) + " (" + c.Reason + ")"
		if c.Type == v1alpha1.ConditionMinAvailableBreached && c.Status == metav1.ConditionFalse {
			is = notBreached
		}
		values = append(values, value{ofCondition + c.Type, is})
	}
	return values
}

// conditions returns the conditions in the status of an object of grove.io or scheduling.run.ai.
func conditions(o client.Object) []metav1.Condition {
	field := fieldOf(o, "Status", "Conditions")
	if !field.IsValid() {
		return nil
	}
	list, _ := field.Interface().([]metav1.Condition)
	return list
}

// fieldOf returns a field of the spec or status of an object, not valid if its kind has none.
func fieldOf(o client.Object, part, name string) reflect.Value {
	of := reflect.ValueOf(o).Elem().FieldByName(part)
	if !of.IsValid() || of.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return of.FieldByName(name)
}

// seePod records a change of a pod under its owner.
func (l *Timeline) seePod(old, now *corev1.Pod) {
	pod := now
	if pod == nil {
		pod = old
	}
	owner, clique, name := "Pod", "", pod.Name
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		owner, clique = ref.Kind+" "+ref.Name, pod.Namespace+"/"+ref.Name
		if index := pod.Labels[v1alpha1.LabelPodIndex]; index != "" {
			name = index
		}
	}
	if now == nil {
		delete(l.pods, old.UID)
		l.add(owner, "gone", name)
		return
	}
	l.pods[now.UID] = now
	if old == nil {
		l.add(owner, "created", name)
		return
	}
	if old.Spec.NodeName == "" && now.Spec.NodeName != "" {
		l.add(owner, "bound", name)
	}
	if old.Status.Phase != now.Status.Phase {
		switch now.Status.Phase {
		case corev1.PodRunning:
			l.add(owner, "started", name)
		default:
			reason := string(now.Status.Phase)
			if now.Status.Reason != "" {
				reason += " (" + now.Status.Reason + ")"
			}
			l.add(owner, reason, name)
		}
	}
	if old.DeletionTimestamp == nil && now.DeletionTimestamp != nil {
		l.add(owner, "terminating", name)
	}
	if workload.IsReady(old) != workload.IsReady(now) {
		e := l.entryOf(owner, "ready", "")
		e.ready, e.clique = true, clique
	}
}

// Eventf implements events.EventRecorder.
func (l *Timeline) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, arguments ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.move()
	o := regarding.(client.Object)
	t, err := l.api.tableOf(o)
	if err != nil {
		return
	}
	text := fmt.Sprintf("event %s: %s", reason, fmt.Sprintf(note, arguments...))
	if kind == corev1.EventTypeWarning {
		text = "warning " + text
	}
	l.entryOf(t.gvk.Kind+" "+o.GetName(), text, "").note = text
}

// say adds a line that is not merged with others.
func (l *Timeline) say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.move()
	l.entryOf(text, "", "").note = text
}

// Say adds a line that describes the next action of the test.
func (l *Timeline) Say(format string, arguments ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
	l.written = append(l.written, "", "# "+fmt.Sprintf(format, arguments...))
}

// add records an event of an object.
func (l *Timeline) add(subject, verb, name string) {
	e := l.entryOf(subject, verb, "")
	e.names = append(e.names, name)
}

// entryOf returns the entry of this second for a subject and a verb; a new entry has the given value before.
func (l *Timeline) entryOf(subject, verb, was string) *entry {
	for _, e := range l.entries {
		if e.subject == subject && e.verb == verb {
			e.count++
			return e
		}
	}
	e := &entry{subject: subject, verb: verb, was: was, is: was, count: 1}
	l.entries = append(l.entries, e)
	return e
}

// move writes the entries of the previous second.
func (l *Timeline) move() {
	if second := int64(l.api.clock.Now().Sub(l.begin) / time.Second); second != l.second {
		l.flush()
		l.second = second
	}
}

// endStep fixes the order of the entries of the step: its deletions may have been made in any order.
func (l *Timeline) endStep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	news := l.entries[l.settled:]
	if !slices.ContainsFunc(news, func(e *entry) bool { return e.verb != "deleted" && e.verb != "terminating" && e.verb != "gone" }) {
		slices.SortStableFunc(news, func(x, y *entry) int { return strings.Compare(x.subject, y.subject) })
	}
	l.settled = len(l.entries)
}

// flush writes the entries so far.
func (l *Timeline) flush() {
	type line struct {
		kind, what string
		who        []string
	}
	var lines []*line
	for _, e := range l.entries {
		kind, who, what := l.line(e)
		if what == "" {
			continue
		}
		i := slices.IndexFunc(lines, func(x *line) bool { return x.kind == kind && x.what == what })
		if i < 0 {
			i = len(lines)
			lines = append(lines, &line{kind: kind, what: what})
		}
		lines[i].who = append(lines[i].who, who...)
	}
	for _, x := range lines {
		slices.Sort(x.who)
		if len(x.who) > 1 {
			x.kind += "s"
		}
		text := x.kind + " " + strings.Join(x.who, ", ") + x.what
		if len(x.who) == 0 {
			text = x.what
		}
		l.written = append(l.written, fmt.Sprintf("%-6s %s", "+"+strconv.FormatInt(l.second, 10)+"s", text))
	}
	l.entries, l.settled = nil, 0
}

// line returns the kind of an entry's objects, their names, and the event: "" if there is no net change.
func (l *Timeline) line(e *entry) (kind string, who []string, what string) {
	kind, name, single := strings.Cut(e.subject, " ")
	who = []string{name}
	switch {
	case e.note != "" && e.subject == e.note:
		return "", nil, e.note
	case e.note != "" && e.count > 1:
		return kind, who, fmt.Sprintf(": %s (%d times)", e.note, e.count)
	case e.note != "":
		return kind, who, ": " + e.note
	case e.ready:
		ready := 0
		for _, pod := range l.pods {
			if ref := metav1.GetControllerOfNoCopy(pod); ref != nil && pod.Namespace+"/"+ref.Name == e.clique && workload.IsReady(pod) && pod.DeletionTimestamp == nil {
				ready++
			}
		}
		return "Pod", []string{fmt.Sprintf("%s (%d of %d)", name, ready, l.wanted[e.clique])}, " ready"
	case len(e.names) > 0 && single: // pods of an owner
		return "Pod", []string{fmt.Sprintf("%s-%s", name, ranges(e.names))}, " " + e.verb
	case len(e.names) > 0:
		return kind, e.names, " " + e.verb
	case e.is == e.was:
		return "", nil, ""
	case e.verb == "replicas":
		return kind, who, fmt.Sprintf(": replicas %s, were %s", e.is, e.was)
	case e.is == "":
		return kind, who, ": " + strings.TrimPrefix(e.verb, ofCondition) + " is no condition any more"
	default:
		return kind, who, ": " + strings.TrimPrefix(e.verb, ofCondition) + " is " + e.is
	}
}

// ranges abbreviates numbers as "7" or "{0..3,7}"; names are kept.
func ranges(names []string) string {
	var numbers []int
	for _, name := range names {
		n, err := strconv.Atoi(name)
		if err != nil {
			slices.Sort(names)
			return strings.Join(names, ", ")
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if j > i {
			parts = append(parts, fmt.Sprintf("%d..%d", numbers[i], numbers[j]))
		} else {
			parts = append(parts, strconv.Itoa(numbers[i]))
		}
		i = j + 1
	}
	if len(numbers) == 1 {
		return parts[0]
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// String returns the timeline so far.
func (l *Timeline) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
	return strings.TrimLeft(strings.Join(l.written, "\n")+"\n", "\n")
}

// tail returns the last lines of the timeline so far.
func (l *Timeline) tail(lines int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
	return strings.Join(l.written[max(0, len(l.written)-lines):], "\n") + "\n"
}

// Golden compares the timeline with testdata/<name>.txt, which go test -update rewrites.
func (l *Timeline) Golden(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	got := l.String()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, []byte(got)) {
		t.Errorf("the timeline differs from %s (-want +got):\n%s", path, gocmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")))
	}
}
