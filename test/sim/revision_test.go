// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// editRouters changes the image of the routers of chat.
func editRouters(c *Cluster, version int) {
	Edit(c, theSet(c, "chat"), func(s *v1alpha1.PodCliqueSet) {
		s.Spec.Template.Clique("router").Spec.PodSpec.Containers[0].Image = fmt.Sprintf("registry.example/main:%d", version)
	})
}

// wantRolled changes the image of the routers of chat, and fails the test unless all routers, and no other pods, are
// replaced.
func wantRolled(c *Cluster, version int) {
	c.t.Helper()
	before := uids(c)
	editRouters(c, version)
	c.Advance(5 * time.Minute)
	var routers []string
	for host := range before {
		if strings.HasPrefix(host, "chat-") && strings.Contains(host, "-router-") {
			routers = append(routers, host)
		}
	}
	wantReplaced(c, before, routers...)
	if p := theSet(c, "chat").Status.UpdateProgress; p == nil || p.UpdateEndedAt == nil {
		c.Fatalf("the update has not ended: %+v", p)
	}
}

func deleteRevisions(c *Cluster) {
	for _, r := range All[*appsv1.ControllerRevision](c) {
		c.Delete(r.DeepCopy())
	}
}

// If the stored revisions are deleted, or missing in a backup, they are stored again unchanged, and no pod is replaced.
// This holds even if a hash of a template was computed by another version, if a set has two such hashes and the other
// one is more frequent now, and if no object of a clique is left.
func TestDeletedRevisionsAreStoredAgain(t *testing.T) {
	for name, change := range map[string]func(client.Object){
		"": nil,
		"with hashes of an earlier version": func(o client.Object) {
			if l := o.GetLabels(); l[v1alpha1.LabelPodTemplateHash] != "" && l[v1alpha1.LabelPodCliqueSetReplicaIndex] == "0" {
				l[v1alpha1.LabelPodTemplateHash] += "-earlier"
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range int64(2) {
				c := beforeUpdates(t, seed, change)
				c.Advance(time.Minute)
				wantRestored := func(number int64) {
					t.Helper()
					hashes := generationHashes(c)
					before := uids(c)
					began := theSet(c, "chat").Status.UpdateProgress
					deleteRevisions(c)
					c.Advance(3 * time.Minute)
					wantReplaced(c, before)
					if diff := cmp.Diff(hashes, generationHashes(c)); diff != "" {
						c.Fatalf("status.currentGenerationHash (-before +after):\n%s", diff)
					}
					if diff := cmp.Diff(began, theSet(c, "chat").Status.UpdateProgress); diff != "" {
						c.Fatalf("an update has begun (-before +after):\n%s", diff)
					}
					if got, hash := revisionOf(c, "chat"); got != number || !slices.Contains(hashes, "chat "+hash) {
						c.Fatalf("revision %d, %s is stored again, want number %d", got, hash, number)
					}
				}
				wantRestored(1)
				Edit(c, scalingGroup(), func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = 0 }) // chat-0: the other hashes are more frequent now
				c.Advance(time.Minute)
				wantRestored(1)
				wantRolled(c, 2)
				wantRolled(c, 3)
				wantRestored(3)
				wantRolled(c, 4)
			}
		})
	}
}

// A set without replicas has no object that shows its revision.
func TestDeletedRevisionOfASetOfNoReplicas(t *testing.T) {
	c := beforeUpdates(t, 0, nil)
	c.Advance(time.Minute)
	rewrite(c, func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = 0; s.Generation++ })
	c.Restart()
	c.Advance(time.Minute)
	rewrite(c, func(s *v1alpha1.PodCliqueSet) { s.Status.CurrentGenerationHash = &[]string{"of-another-version"}[0] })
	c.Restart()
	deleteRevisions(c)
	c.Advance(time.Minute)
	for _, s := range All[*v1alpha1.PodCliqueSet](c) {
		if *s.Status.CurrentGenerationHash != "of-another-version" || s.Status.UpdateProgress != nil {
			c.Fatalf("set %s: %+v", s.Name, s.Status)
		}
	}
}

// A template that a set has had before gets its former revision, with a new number. Ten revisions are kept, and the
// present one is among them even if it is the oldest. Those that pods have are kept besides.
func TestRollBack(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
	c.Create(podCliqueSet())
	c.Advance(time.Minute)
	first := *theSet(c, "chat").Status.CurrentGenerationHash // pods have it until the update reaches them
	var hashes []string
	for version := range 12 {
		editRouters(c, version+2)
		c.Settle()
		hashes = append(hashes, *theSet(c, "chat").Status.CurrentGenerationHash)
	}
	stored := func() map[string]int64 {
		m := map[string]int64{}
		for _, r := range All[*appsv1.ControllerRevision](c) {
			m[strings.TrimPrefix(r.Name, "chat-")] = r.Revision
		}
		return m
	}
	want := map[string]int64{first: 1}
	for k, hash := range hashes[2:] {
		want[hash] = int64(k + 4)
	}
	if diff := cmp.Diff(want, stored()); diff != "" {
		c.Fatalf("revisions (-want +got):\n%s", diff)
	}
	there := identities[*appsv1.ControllerRevision](c)
	editRouters(c, 4) // the oldest
	c.Advance(10 * time.Minute)
	want[hashes[2]] = 14
	if diff := cmp.Diff(want, stored()); diff != "" {
		c.Fatalf("revisions after a rollback to the oldest (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(there, identities[*appsv1.ControllerRevision](c)); diff != "" {
		c.Fatalf("a revision was deleted and stored again (-before +after):\n%s", diff)
	}
	s := theSet(c, "chat").Status
	if *s.CurrentGenerationHash != hashes[2] || s.UpdateProgress.UpdateEndedAt == nil || s.UpdatedReplicas != 1 {
		c.Fatalf("%+v", s)
	}
	for _, p := range podsOf(c, "chat-0-router") {
		if p.Spec.Containers[0].Image != "registry.example/main:4" {
			c.Fatalf("pod %s has image %s", p.Name, p.Spec.Containers[0].Image)
		}
	}
}

// A stored revision that cannot be decoded, whatever its number, does not block the set: it is replaced if it is the
// present one.
func TestUnreadableRevision(t *testing.T) {
	for name, spoil := range map[string]func(*appsv1.ControllerRevision){
		"no JSON":         func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte("spoiled") },
		"nothing":         func(r *appsv1.ControllerRevision) { r.Data.Raw = nil },
		"an empty one":    func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte("{}") },
		"of another kind": func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(`{"spec":{"template":{"$patch":"replace"}}}`) },
		"of another hash": func(r *appsv1.ControllerRevision) {
			last := strings.LastIndex(string(r.Data.Raw), `"hash":"`) // the hash of the revision itself: its keys are sorted
			r.Data.Raw = []byte(string(r.Data.Raw[:last]) + `"hash":"x` + string(r.Data.Raw[last+len(`"hash":"`):]))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := beforeUpdates(t, 0, nil)
			c.Advance(time.Minute)
			hashes := generationHashes(c)
			rewrite(c, spoil)
			wantQuiet(t, c, c.Restart)
			if diff := cmp.Diff(hashes, generationHashes(c)); diff != "" {
				c.Fatalf("status.currentGenerationHash (-before +after):\n%s", diff)
			}
			wantQuietRestart(t, c)
			// Another one beside the present one, with a higher number.
			_, hash := revisionOf(c, "chat")
			other := &appsv1.ControllerRevision{}
			must(t, c.API.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "chat-" + hash}, other))
			other = &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "chat-other", Labels: other.Labels, OwnerReferences: other.OwnerReferences},
				Data: other.Data, Revision: 9}
			spoil(other)
			c.Create(other)
			wantQuietRestart(t, c)
			wantRolled(c, 2)
			wantRolled(c, 3)
		})
	}
}

// A user edits a PodClique, and then the set in the same way before the edit is reverted: the hash of the PodClique is
// still that of the previous template.
func TestPodCliqueAndTemplateAreEditedTogether(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
	c.Create(podCliqueSet())
	c.Advance(time.Minute)
	before := uids(c)
	c.process.end()
	c.process = nil
	Edit(c, &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "chat-0-router"}}, func(q *v1alpha1.PodClique) {
		q.Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
	})
	editRouters(c, 2)
	c.start()
	c.Advance(5 * time.Minute)
	wantReplaced(c, before, "chat-0-router-")
	version := c.API.version
	c.Restart()
	c.Advance(5 * time.Minute)
	if c.API.version != version {
		c.Fatalf("%d writes though nothing happens", c.API.version-version)
	}
}
