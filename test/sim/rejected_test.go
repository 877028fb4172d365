// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
)

// rejectImages makes the API server reject pods whose image ends with the given text, as an admission policy does.
func rejectImages(c *Cluster, suffix string) {
	c.API.Refuse = func(verb Verb, o client.Object) error {
		if pod, ok := o.(*corev1.Pod); ok && verb == Create && strings.HasSuffix(pod.Spec.Containers[0].Image, suffix) {
			return apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, errors.New("the image is not allowed"))
		}
		return nil
	}
}

// wantEvents fails the test unless the timeline has n events with the reason.
func wantEvents(c *Cluster, n int, reason string) {
	c.t.Helper()
	if got := strings.Count(c.Timeline.String(), "event "+reason); got != n {
		c.Fatalf("%d events %s, want %d", got, reason, n)
	}
}

// A template whose pods the API server rejects replaces nothing, however long; with a corrected template, or when pods
// are accepted, the update goes on.
func TestRejectedTemplate(t *testing.T) {
	for _, policyIsChanged := range []bool{false, true} {
		c := newService(t, Nodes(2, 4), 2, nil)
		before := uids(c)
		c.Timeline.Say("the image becomes one that a policy forbids")
		rejectImages(c, "main:2")
		image(c, podCliqueSet(), "registry.example/main:2", "web")
		c.Advance(20 * time.Minute)
		wantReplaced(c, before)
		wantAvailable(c, 6)
		wantProgress(c, lifecycle.UpdateTemplateRejected, "clique web: ")
		wantEvents(c, 1, v1alpha1.EventTemplateRejected)
		if policyIsChanged {
			c.API.Refuse = nil
			c.Advance(5 * time.Minute)
			wantUpdated(c)
			wantAvailable(c, 6)
			continue
		}
		c.Timeline.Say("it becomes main:3")
		image(c, podCliqueSet(), "registry.example/main:3", "web")
		c.Advance(5 * time.Minute)
		wantUpdated(c)
		wantAvailable(c, 6)
		wantEvents(c, 1, v1alpha1.EventTemplateRejected)
		c.Timeline.Golden(t, "rollout-rejected")
	}
}

// A rejected template that follows one that is being rolled out stops the update: the replica that it was at keeps its
// ready pods.
func TestRejectedTemplateDuringAnUpdate(t *testing.T) {
	for seed := range int64(10) {
		c := newService(t, Nodes(2, 4), 2, nil)
		rejectImages(c, "main:3")
		image(c, podCliqueSet(), "registry.example/main:2", "web")
		c.Advance(time.Duration(seed) * 5 * time.Second)
		before := uids(c)
		image(c, podCliqueSet(), "registry.example/main:3", "web")
		c.Advance(5 * time.Minute)
		gone := 0
		now := uids(c)
		for name := range before {
			if now[name] != before[name] {
				gone++
			}
		}
		if gone > 1 { // the pod in flight
			c.Fatalf("%d pods were replaced since the template is rejected", gone)
		}
		wantProgress(c, lifecycle.UpdateTemplateRejected, "clique web: ")
		image(c, podCliqueSet(), "registry.example/main:4", "web")
		c.Advance(10 * time.Minute)
		wantUpdated(c)
		wantAvailable(c, 6)
	}
}

// Of a scaling group whose replicas are replaced whole, the cliques without a change are tried, too.
func TestRejectedTemplateOfAScalingGroup(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(8, 4), Check: both(invariants(), both(terminations(), updates()))})
	c.Create(podCliqueSet())
	c.Advance(time.Minute)
	before := uids(c)
	c.API.Refuse = func(verb Verb, o client.Object) error {
		if pod, ok := o.(*corev1.Pod); ok && verb == Create && pod.Labels[v1alpha1.LabelTemplateName] != "worker" {
			return apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, errors.New("no new leaders"))
		}
		return nil
	}
	image(c, podCliqueSet(), "registry.example/main:2", "worker")
	c.Advance(5 * time.Minute)
	wantReplaced(c, before)
	wantProgress(c, lifecycle.UpdateTemplateRejected, "clique leader: ")
	c.API.Refuse = nil
	c.Advance(5 * time.Minute)
	wantUpdated(c)
}

// A replica of a scaling group that the update to the template before the rejected one has deleted comes back with that
// template: the rejected one costs no pod.
func TestRejectedTemplateWhileAGroupReplicaIsReplaced(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(6, 4), Check: invariants()})
	c.Kubelet.Linger = 10 * time.Second
	rejectImages(c, "main:3")
	c.Create(podCliqueSet())
	c.Advance(time.Minute)
	image(c, podCliqueSet(), "registry.example/main:2", "leader", "worker")
	c.Advance(5 * time.Second) // pods of replica 0 of the group terminate
	image(c, podCliqueSet(), "registry.example/main:3", "leader", "worker")
	c.Advance(20 * time.Minute)
	wantProgress(c, lifecycle.UpdateTemplateRejected, "clique leader: ")
	wantAvailable(c, 8)
	image(c, podCliqueSet(), "registry.example/main:4", "leader", "worker")
	c.Advance(5 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 8)
}

// An API server that cannot say whether it accepts pods does not stop an update; one event says that it is unknown.
func TestUncheckedTemplate(t *testing.T) {
	c := newService(t, Nodes(2, 4), 2, nil)
	asked := false
	c.API.Refuse = func(verb Verb, o client.Object) error {
		if _, ok := o.(*corev1.Pod); ok && verb == Create && !asked {
			asked = true
			return apierrors.NewBadRequest(`admission webhook "images.example" does not support dry run`)
		}
		return nil
	}
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(5 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 6)
	wantEvents(c, 1, v1alpha1.EventTemplateUnchecked)
	wantEvents(c, 0, v1alpha1.EventTemplateRejected)
}

// Under OnDelete a rejected template is told once, and changes nothing else.
func TestRejectedTemplateOnDelete(t *testing.T) {
	c := newService(t, Nodes(2, 4), 2, func(set *v1alpha1.PodCliqueSet) {
		set.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}
	})
	before := uids(c)
	rejectImages(c, "main:2")
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(20 * time.Minute)
	wantReplaced(c, before)
	wantProgress(c, lifecycle.UpdateOnDelete, "")
	wantEvents(c, 1, v1alpha1.EventTemplateRejected)
}

// Whichever write is the last before a crash, or is a conflict: a rejected template replaces nothing, the update goes
// on with a template that is accepted, and a restarted process does not repeat the event.
func TestRejectedTemplateCrashes(t *testing.T) {
	for n := range 8 {
		for _, crash := range []bool{false, true} {
			c := newService(t, Nodes(2, 4), 2, nil)
			before := uids(c)
			rejectImages(c, "main:2")
			if crash {
				c.CrashAfterWrites(n)
			} else {
				c.RefuseWrite(n)
			}
			image(c, podCliqueSet(), "registry.example/main:2", "web")
			c.Advance(5 * time.Minute)
			c.Restart()
			c.Advance(5 * time.Minute)
			wantReplaced(c, before)
			wantAvailable(c, 6)
			wantProgress(c, lifecycle.UpdateTemplateRejected, "clique web: ")
			if told := strings.Count(c.Timeline.String(), "event "+v1alpha1.EventTemplateRejected); told > 2 || !crash && told > 1 {
				c.Fatalf("write %d, crash %t: %d events", n, crash, told)
			}
			image(c, podCliqueSet(), "registry.example/main:3", "web")
			c.Advance(5 * time.Minute)
			wantUpdated(c)
		}
	}
}
