// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// labelTopics finds the gangs that an event of a pod may help because of labels: those with a required affinity, an
// anti-affinity or a hard spreading constraint that selects the pod, and those that the pod's own anti-affinity
// selects. Its topics are the selectors, and the sets of labels of the gangs' pods. Guarded by Backlog.mu.
type labelTopics struct {
	all      map[string]*labelTopic
	byBucket map[bucket]map[*labelTopic]struct{}
	pods     map[*labelTopic]struct{} // the topics that are sets of labels
}

// labelTopic is a selector of pods, or a set of labels of waiting pods.
type labelTopic struct {
	key      string
	users    int
	selector labels.Selector // nil: a set of labels
	buckets  []bucket        // of a selector
	pod      *corev1.Pod     // a pod with the set of labels
}

// bucket is where selectors are looked up: a namespace ("": all), and a label that each pod has that the selector
// matches (key "": it requires no such label).
type bucket struct{ namespace, key, value string }

func newLabelTopics() *labelTopics {
	return &labelTopics{all: map[string]*labelTopic{}, byBucket: map[bucket]map[*labelTopic]struct{}{}, pods: map[*labelTopic]struct{}{}}
}

// track returns the topics of a waiting pod. Each of them must be released.
func (x *labelTopics) track(pod *corev1.Pod) ([]*labelTopic, error) {
	affinity, antiAffinity, err := kubescheduler.RequiredTerms(pod)
	if err != nil {
		return nil, fmt.Errorf("reading the affinity of a pod: %w", err)
	}
	found := []*labelTopic{{key: pod.Namespace + " has " + labels.Set(pod.Labels).String(), pod: pod}}
	for _, term := range slices.Concat(affinity, antiAffinity) {
		found = append(found, selectorTopic(namespacesOf(term), term.Selector))
	}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector) // without matchLabelKeys, which only restrict it
		if err != nil {
			return nil, fmt.Errorf("reading a spreading constraint of a pod: %w", err)
		}
		found = append(found, selectorTopic([]string{pod.Namespace}, selector))
	}
	for i, topic := range found {
		if known := x.all[topic.key]; known != nil {
			found[i] = known
		} else {
			x.add(topic)
		}
		found[i].users++
	}
	return found, nil
}

func (x *labelTopics) add(topic *labelTopic) {
	x.all[topic.key] = topic
	if topic.selector == nil {
		x.pods[topic] = struct{}{}
	}
	for _, b := range topic.buckets {
		if x.byBucket[b] == nil {
			x.byBucket[b] = map[*labelTopic]struct{}{}
		}
		x.byBucket[b][topic] = struct{}{}
	}
}

// release ends one use of each topic.
func (x *labelTopics) release(topics []*labelTopic) {
	for _, topic := range topics {
		if topic.users--; topic.users > 0 {
			continue
		}
		delete(x.all, topic.key)
		delete(x.pods, topic)
		for _, b := range topic.buckets {
			if delete(x.byBucket[b], topic); len(x.byBucket[b]) == 0 {
				delete(x.byBucket, b)
			}
		}
	}
}

// namespacesOf returns the namespaces of a term; "": any, because the labels of namespaces are not known here.
func namespacesOf(term fwk.AffinityTerm) []string {
	if _, selects := term.NamespaceSelector.Requirements(); selects {
		return []string{""}
	}
	return term.Namespaces.UnsortedList()
}

func selectorTopic(namespaces []string, selector labels.Selector) *labelTopic {
	slices.Sort(namespaces)
	requirements, selects := selector.Requirements()
	if !selects {
		return &labelTopic{key: "selects nothing", selector: selector}
	}
	topic := &labelTopic{key: strings.Join(namespaces, ",") + " selects " + selector.String(), selector: selector}
	i := slices.IndexFunc(requirements, func(r labels.Requirement) bool {
		return r.Operator() == selection.In || r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals
	})
	for _, namespace := range namespaces {
		if i < 0 {
			topic.buckets = append(topic.buckets, bucket{namespace: namespace})
			continue
		}
		for value := range requirements[i].Values() {
			topic.buckets = append(topic.buckets, bucket{namespace, requirements[i].Key(), value})
		}
	}
	return topic
}

// of returns the topics of an event of a pod that has, or had, these labels. It subtracts the comparisons from those
// that are left.
func (x *labelTopics) of(pod *corev1.Pod, left *int) []gangs.Topic {
	var out []gangs.Topic
	see := func(b bucket) {
		for topic := range x.byBucket[b] {
			if *left--; topic.selector.Matches(labels.Set(pod.Labels)) {
				out = append(out, topic)
			}
		}
	}
	for _, namespace := range []string{pod.Namespace, ""} {
		see(bucket{namespace: namespace})
		for key, value := range pod.Labels {
			see(bucket{namespace, key, value})
		}
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return out
	}
	_, antiAffinity, err := kubescheduler.RequiredTerms(pod)
	for topic := range x.pods {
		*left--
		if err != nil || slices.ContainsFunc(antiAffinity, func(term fwk.AffinityTerm) bool {
			namespaces := namespacesOf(term)
			return (slices.Contains(namespaces, topic.pod.Namespace) || slices.Contains(namespaces, "")) && term.Selector.Matches(labels.Set(topic.pod.Labels))
		}) {
			out = append(out, topic)
		}
	}
	return out
}

// podEvents collects what events tell: their pods, as they were before and after them, and the topics of other objects.
// Guarded by Backlog.eventMu.
type podEvents struct {
	pods   []*corev1.Pod
	topics []gangs.Topic
	many   bool // more than maxPodEvents
}

const (
	// maxPodEvents bounds the collected pods and topics.
	maxPodEvents = 4096
	// maxComparisons bounds the time for the topics of one batch of events, to a few milliseconds.
	maxComparisons = 10_000
)

func (e *podEvents) add(topics []gangs.Topic, objects ...any) {
	if !e.many {
		e.topics = append(e.topics, topics...)
	}
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok && pod != nil && !e.many {
			e.pods = append(e.pods, pod)
		}
	}
	if len(e.pods)+len(e.topics) > maxPodEvents {
		*e = podEvents{many: true}
	}
}

// anyPod is the topic of all gangs that wait for events of pods with certain labels, or host ports.
const anyPod = "any pod"

// topics returns the topics of the collected events.
func (x *labelTopics) topics(e podEvents) []gangs.Topic {
	if e.many {
		return []gangs.Topic{anyPod, anyVolume, anyDevice}
	}
	out := slices.Clone(e.topics)
	left := maxComparisons
	for _, pod := range e.pods {
		if left < 0 {
			return append(out, anyPod)
		}
		out = append(out, x.of(pod, &left)...)
	}
	return out
}
