// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// These tests check the output of kubectl as users see it.

// kubectl runs bin/kubectl in the namespace and returns what it prints.
func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	args = append([]string{"--kubeconfig", cp.AdminKubeconfig(), "--namespace", c.namespace}, args...)
	output, err := exec.CommandContext(c.ctx, "../../../bin/kubectl", args...).CombinedOutput()
	c.must(err, fmt.Sprintf("kubectl %s: %s", strings.Join(args[4:], " "), output))
	return string(output)
}

// A gang of 12 leaves that has no room: the PodGroup fits two screens, and a pod of each of eight leaves has its reason
// as an event.
func TestWhatKubectlDescribesOfALargeGang(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	tree := c.group("chat").MinSubGroup(2).Inner("", "prefill", 3).Inner("", "decode", 3).Inner("", "router", 0)
	var leaves []string
	for i := range 12 {
		parent := []string{"prefill", "decode", "router"}[i%3]
		leaves = append(leaves, fmt.Sprintf("%s-%d", parent, i/3))
		tree = tree.SubGroupOf(parent, leaves[i], 2)
	}
	c.apply(tree)
	for _, leaf := range leaves {
		for i := range 2 {
			c.create(c.pod(fmt.Sprintf("%s-%d", leaf, i), "chat", 4).SubGroup(leaf))
		}
	}
	c.untilSays("chat", v2alpha2.ReasonTooLarge)
	c.untilTold("PodGroup", "chat", "GangBlocked", "TooLarge")

	// The first pods of eight leaves have the reason.
	leavesTold := map[string]bool{}
	c.untilNotes("8 leaves have their reason", func(notes map[string][]string) bool {
		for pod, of := range notes {
			if strings.Contains(strings.Join(of, "\n"), ": PodGroup chat: TooLarge: ") {
				leavesTold[strings.TrimSuffix(pod, "-0")] = true
			}
		}
		return len(leavesTold) == 8
	})
	for _, leaf := range leaves {
		if n := len(c.countEvents("Pod", leaf+"-1")); n > 0 {
			t.Errorf("the second pod of leaf %s has %d events, want one event for both", leaf, n)
		}
		if pod := c.kubectl("describe", "pod", leaf+"-0"); leavesTold[leaf] && !strings.Contains(pod, "PodGroup chat: TooLarge: ") {
			t.Errorf("kubectl describe pod does not say why it waits:\n%s", pod)
		}
	}

	group := c.kubectl("describe", "pg", "chat")
	if lines := strings.Count(group, "\n"); lines > 110 {
		t.Errorf("%d lines, want about two screens:\n%s", lines, group)
	}
	for _, leaf := range leaves {
		if n := strings.Count(group, leaf+": 0/2 bound, 2 exist\n"); n != 1 {
			t.Errorf("%d lines about leaf %s, want 1:\n%s", n, leaf, group)
		}
	}
	t.Logf("kubectl describe pg: %d lines\n%s", strings.Count(group, "\n"), group)

	columns := strings.Fields(c.kubectl("get", "pg", "chat", "--no-headers"))
	want := []string{"chat", "Waiting", "TooLarge", "0/12", "0/96"}
	if len(columns) != len(want)+2 || !slices.Equal(columns[:len(want)], want) { // since when, and the age
		t.Errorf("columns %q, want %q and two durations", columns, want)
	}
}

// untilNotes waits until the events about pods of the namespace are as wanted: for each pod "reason: note" of its
// events.
func (c *cluster) untilNotes(what string, done func(notes map[string][]string) bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, 30*time.Second)
	defer cancel()
	var notes map[string][]string
	err := controlplane.Until(ctx, cp.Client().EventsV1().Events(c.namespace), metav1.ListOptions{}, func(events []*eventsv1.Event) bool {
		notes = map[string][]string{}
		for _, e := range events {
			if e.Regarding.Kind == "Pod" {
				notes[e.Regarding.Name] = append(notes[e.Regarding.Name], e.Reason+": "+e.Note)
			}
		}
		return done(notes)
	})
	c.must(err, fmt.Sprintf("waiting until %s; events of pods are %q", what, notes))
}

// The conditions of pods of a running gang report their part: above the minimum, or replacing a lost pod.
func TestWhatKubectlDescribesOfARunningGang(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.apply(c.group("g").MinMember(2))
	for i := range 2 {
		c.create(c.pod(fmt.Sprintf("g-%d", i), "g", 4))
	}
	c.untilBound("g", 2)
	c.untilSatisfied("g")
	c.create(c.pod("more", "g", 4))
	c.untilTold("Pod", "more", "WaitingForGang", "above the minimum of PodGroup g, which runs without it: ", "InsufficientGPUs: ")
	c.untilStatus("g", "has the GPUs of its pods", func(s v2Status) bool { return s.GPUs == "8/12" && s.Needs == "2 pods" })

	c.cordon(true, c.nodes...)
	c.delete("g-1")
	c.untilNotes("the pod replaces one", func(notes map[string][]string) bool {
		return strings.Contains(strings.Join(notes["more"], "\n"), "replaces pods that PodGroup g has lost while it runs: ")
	})
}

// A claim that does not exist is the reason that a pod of the gang shows, as in the stock scheduler.
func TestAMissingClaimIsNamed(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.apply(c.group("g").MinMember(2))
	for i := range 2 {
		c.create(c.pod(fmt.Sprintf("g-%d", i), "g", 1).Claim("data"))
	}
	c.untilNotes("a pod names the claim", func(notes map[string][]string) bool {
		return strings.Contains(strings.Join(notes["g-0"], "\n"), `persistentvolumeclaim "data" not found`)
	})
}

// 50 pods whose PodGroup does not exist: one event, not 50.
func TestPodsWithoutAPodGroupShareAnEvent(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	names := numbered("lost", 50)
	for _, name := range names {
		c.create(c.pod(name, "nowhere", 1))
	}
	c.untilPodSays("WaitingForGang", names...)
	c.untilTold("Pod", names[0], "PodGroupNotFound", `"nowhere"`, "50 pods wait")
	c.stillSchedules()
	total := 0
	for _, name := range names {
		total += c.countEvents("Pod", name)["PodGroupNotFound"]
	}
	if total != 1 {
		t.Errorf("%d events PodGroupNotFound about 50 pods, want 1", total)
	}
}

func TestLogsAreJSONIfAsked(t *testing.T) {
	c := newCluster(t, 1)
	c.start("--logging-format=json")
	c.createGang("g", 1, 1)
	c.untilBound("g", 1)
	for _, line := range strings.Split(strings.TrimSpace(c.scheduler.LogTail(20)), "\n") {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry["msg"] == "" {
			t.Errorf("a line of the log is no JSON object (%v): %s", err, line)
		}
	}
}
