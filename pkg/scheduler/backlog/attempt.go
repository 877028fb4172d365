// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"context"
	"math"
	"slices"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// Attempt contains the data of a refused attempt that are relevant for the next one.
type Attempt struct {
	Gang    gangs.Key
	Problem placement.Problem
	Classes []*corev1.Pod // by class index: a pod of the class
	// RefusedBy returns what may have refused a class beside the free resources and the properties of the nodes
	// themselves. The room of the class is ignored where counted is false. nil: the attempt was not refused for lack of
	// room.
	RefusedBy func(class int) (by kubescheduler.Inputs, counted bool)
	// Pods are the pods that were planned. VolumeClaim returns a claim of them, nil if it does not exist. Both are
	// needed if volumes or devices may have refused a class.
	Pods        []*corev1.Pod
	VolumeClaim func(namespace, name string) *corev1.PersistentVolumeClaim
	// Domains restricts the pods of classes to domains of topology levels.
	Domains Domains
	// Nodes are the nodes of the attempt's snapshot.
	Nodes []fwk.NodeInfo
	// Task is the task that was planned. For tasks other than Minimum, room for any pod of the classes may help.
	Task gangs.Task
	// Asker is the gang, for which room may be reserved.
	Asker reservations.Asker
	Took  time.Duration
	Cut   bool // the attempt ended for lack of time and will be continued
	// Progress is how far it and those before came, if it was cut.
	Progress gangs.Progress
	Until    time.Time // when something that the attempt took into account is no longer known; zero: never
	// OwnChange: it was refused before nodes were considered: only a change of the gang, or of a Topology that it
	// names, helps.
	OwnChange bool
}

const (
	// sliceShare determines the pause after an attempt that was cut short and will be continued, as a multiple of its
	// duration, at least minPause.
	sliceShare = 4
	minPause   = 100 * time.Millisecond
)

// maxShapes bounds the shapes, and the domains, that are tracked for one gang. Omitting one can only cause unnecessary
// attempts.
const maxShapes = 32

// Refuse records that a gang was refused in the current cycle, and what it waits for.
func (b *Backlog) Refuse(logger klog.Logger, a Attempt, why podgroup.Refusal) gangs.Effects {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reserved = b.registry.Reservations()
	b.updateShapes(logger)
	now := b.clock.Now()
	e := b.registry.RecordGangRefused(a.Gang, why, b.waitAfter(logger, a, now), now)
	b.eventMu.Lock()
	relabeled := b.inCycle.relabeled.Clone()
	b.eventMu.Unlock()
	b.registry.RecordRelabeled(relabeled, now) // the attempt may not have seen it
	return e
}

// waitAfter returns what a gang waits for after a refused attempt.
func (b *Backlog) waitAfter(logger klog.Logger, a Attempt, now time.Time) gangs.Wait {
	if a.OwnChange {
		return gangs.Wait{Took: a.Took} // the Registry tries it again after such a change
	}
	t := b.track(logger, a)
	what := gangs.Wait{Took: a.Took, Progress: a.Progress, Until: a.Until}
	if a.Cut {
		what.Again = now.Add(max(minPause, sliceShare*a.Took))
	}
	asker := a.Asker // the functions must not keep the attempt, and with it the snapshot, while the gang waits
	what.Fits = func(at gangs.Shape) int { return b.fits(at, asker) }
	if a.RefusedBy != nil {
		what.Needs, what.MayFit = t.needs(a, what.Fits)
		b.addDomains(&t, &a, &what)
	}
	var helps causes
	helps, what.Topics = t.events(a)
	what.Release = func() {
		b.labels.release(t.labels)
		for _, d := range t.domains {
			b.shapes.ReleaseDomain(d)
		}
		for _, s := range t.shapes {
			b.shapes.ReleaseShape(s)
		}
	}
	// The cache may contain the effect of an event that the attempt has not seen and that has not been observed yet.
	b.eventMu.Lock()
	missed := b.inCycle
	b.eventMu.Unlock()
	what.Missed = b.shapes.RaisedSince(a.Nodes, t.shapes, t.domains) || missed.causes&(helps|nominationGone) != 0 ||
		sets.New(what.Topics...).HasAny(b.labels.topics(missed.pods)...)
	return what
}

// tracked is what is tracked for a gang as long as it waits.
type tracked struct {
	byClass   []gangs.Shape // nil: the room for the class is unknown
	shapes    []*kubescheduler.Shape
	domains   []*kubescheduler.DomainShape
	labels    []*labelTopic
	helps     causes        // kinds of events that may help, beside those with the topics
	uncounted bool          // an increase of the room may not be noticed
	topics    []gangs.Topic // of events that may help, beside those of labels
}

// track begins to track what decides about the classes of a refused attempt.
func (b *Backlog) track(logger klog.Logger, a Attempt) tracked {
	t := tracked{byClass: make([]gangs.Shape, len(a.Classes)), helps: moreRoom}
	if a.RefusedBy == nil {
		t.helps = anything
	}
	var all kubescheduler.Inputs
	for class, pod := range a.Classes {
		by, counted := a.RefusedBy(class)
		all.Add(by)
		if by.Labels {
			topics, err := b.labels.track(pod)
			if err != nil {
				t.helps = anything
			}
			t.labels = append(t.labels, topics...)
		}
		if by.Ports {
			t.topics = append(t.topics, awaitedPorts(pod)...)
		}
		if !counted {
			t.uncounted = true
			continue
		}
		if len(t.shapes) == maxShapes {
			t.helps = anything // an increase of the room would not be noticed
			continue
		}
		shape, err := b.shapes.TrackShape(context.Background(), pod)
		if err != nil {
			logger.Error(err, "Failed to count free room", "pod", klog.KObj(pod))
			t.helps = anything
			continue
		}
		t.shapes = append(t.shapes, shape)
		t.byClass[class] = shape
	}
	if all.Others {
		t.helps = anything
	}
	t.trackClaims(a, all)
	return t
}

// trackClaims adds the topics of the claims of the pods: any pod of a class may have claims of its own.
func (t *tracked) trackClaims(a Attempt, by kubescheduler.Inputs) {
	if !by.Volumes && !by.Devices {
		return
	}
	if by.Volumes {
		t.topics = append(t.topics, anyVolume)
	}
	if by.Devices {
		t.topics = append(t.topics, anyDevice)
	}
	if by.Disks {
		t.topics = append(t.topics, disksReleased)
	}
	if by.Attachments {
		t.topics = append(t.topics, volumesReleased)
	}
	before := len(t.topics)
	for _, pod := range a.Pods {
		if by.Volumes {
			t.topics = append(t.topics, awaitedVolumes(pod, a.VolumeClaim)...)
		}
		if by.Disks {
			t.topics = append(t.topics, awaitedUsers(pod)...)
		}
		if by.Devices {
			t.topics = append(t.topics, awaitedDevices(pod)...)
		}
		if len(t.topics)-before > maxClaimTopics {
			t.topics = t.topics[:before]
			t.helps |= otherVolumes | otherClaims | otherPods
			return
		}
	}
}

// needs returns how many pods of which shapes must fit, and the necessary condition of a plan.
func (t *tracked) needs(a Attempt, fitsOf func(gangs.Shape) int) (needs []gangs.Need, mayFit func() bool) {
	fits := func(class int) int {
		if t.byClass[class] == nil {
			return unlimited
		}
		return fitsOf(t.byClass[class])
	}
	least := func(int) int { return 0 } // any pod may be placed by itself: any additional room may help
	classes := len(a.Classes)
	mayFit = func() bool { return anyFits(classes, fits) }
	if a.Task == gangs.Minimum {
		demand := placement.NewDemand(a.Problem)
		least = func(class int) int { return leastOf(demand, class) }
		mayFit = func() bool { return demand.MayFit(fits) }
	}
	for class, shape := range t.byClass {
		if shape != nil {
			needs = append(needs, gangs.Need{Shape: shape, Pods: least(class)})
		}
	}
	return needs, mayFit
}

// events returns the kinds of events that may help, and the topics for which the gang waits.
func (t *tracked) events(a Attempt) (helps causes, topics []gangs.Topic) {
	helps = t.helps
	if !slices.ContainsFunc(a.Classes, dependsOnBound) {
		helps &^= boundPod
	}
	if len(t.labels)+len(t.topics) > 0 {
		topics = append(t.topics, anyPod)
		helps |= otherNodes
	} else if !a.Domains.explainLabels(&a) {
		helps |= otherNodes
	}
	noticed := moreRoom // by the shapes
	if t.uncounted || t.helps&otherPods != 0 {
		noticed = 0
	}
	topics = append(topics, (helps &^ noticed).topics()...)
	for _, topic := range t.labels {
		topics = append(topics, topic)
	}
	return helps, topics
}

// unlimited represents unknown room.
const unlimited = math.MaxInt

// leastOf returns the minimum number of pods of the class that must fit for the gang to be placed, assuming unlimited
// room for the other classes.
func leastOf(demand *placement.Demand, class int) int {
	enough := func(n int) bool {
		return demand.MayFit(func(c int) int {
			if c == class {
				return n
			}
			return unlimited
		})
	}
	if enough(0) {
		return 0
	}
	low, high := 0, 1 // low is not sufficient
	for ; high < 1<<30 && !enough(high); high *= 2 {
		low = high
	}
	return low + 1 + sort.Search(high-low-1, func(i int) bool { return enough(low + 1 + i) })
}

// anyFits reports whether a pod of any class fits.
func anyFits(classes int, fits func(class int) int) bool {
	for class := range classes {
		if fits(class) > 0 {
			return true
		}
	}
	return false
}
