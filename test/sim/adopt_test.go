// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// beforeUpdates returns a cluster with the objects of testdata/before-updates.yaml, modified by changes, in which the
// present muster-controller starts. It has not run yet.
func beforeUpdates(t *testing.T, seed int64, change func(client.Object)) *Cluster {
	t.Helper()
	data, err := os.ReadFile("testdata/before-updates.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := New(t, Options{WithoutControllers: true, Nodes: Nodes(8, 8), Seed: seed, Check: invariants()})
	c.Clock.SetTime(epoch.Add(8 * time.Minute))
	decoder := serializer.NewCodecFactory(c.API.scheme).UniversalDeserializer()
	for i, document := range strings.Split(string(data), "\n---\n")[1:] {
		o, gvk, err := decoder.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatalf("object %d: %v", i, err)
		}
		object := o.(client.Object)
		if change != nil {
			change(object)
		}
		put(c.API, object, gvk.Kind)
	}
	c.RestartScheduler()
	c.options.WithoutControllers = false
	c.start()
	return c
}

// put stores an object unmodified, like the restoration of a backup.
func put(a *API, o client.Object, kind string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, err := a.tableOf(o)
	if err != nil {
		panic(err)
	}
	a.made[kind+" "+client.ObjectKeyFromObject(o).String()] = 10
	a.change(t, nil, o)
}

// identities returns the UIDs of the objects of a kind by name.
func identities[T client.Object](c *Cluster) map[string]string {
	m := map[string]string{}
	for _, o := range All[T](c) {
		m[o.GetName()] = string(o.GetUID())
	}
	return m
}

// templateHashes returns the label pod-template-hash of the objects of a kind, by name.
func templateHashes[T client.Object](c *Cluster) map[string]string {
	m := map[string]string{}
	for _, o := range All[T](c) {
		m[o.GetName()] = o.GetLabels()[v1alpha1.LabelPodTemplateHash]
	}
	return m
}

// wantQuiet fails the test unless an upgrade has replaced no object and kept all hashes, no update has begun, and every
// replica counts as updated.
func wantQuiet(t *testing.T, c *Cluster, upgrade func()) {
	t.Helper()
	look := func() []map[string]string {
		return []map[string]string{
			identities[*corev1.Pod](c), identities[*v1alpha1.PodClique](c), identities[*v1alpha1.PodCliqueScalingGroup](c),
			templateHashes[*corev1.Pod](c), templateHashes[*v1alpha1.PodClique](c),
		}
	}
	before := look()
	if len(before[0]) < 30 {
		c.Fatalf("%d pods, want at least 30", len(before[0]))
	}
	upgrade()
	c.Advance(10 * time.Minute) // the limit of the job is an hour
	if diff := cmp.Diff(before, look()); diff != "" {
		c.Fatalf("an upgrade of muster-controller changed what is there (-before +after):\n%s", diff)
	}
	for _, s := range All[*v1alpha1.PodCliqueSet](c) {
		if s.Status.UpdateProgress != nil || s.Status.CurrentGenerationHash == nil || s.Status.UpdatedReplicas != s.Spec.Replicas || s.Status.AvailableReplicas != s.Spec.Replicas {
			c.Fatalf("set %s: %+v", s.Name, s.Status)
		}
	}
	for _, g := range All[*v1alpha1.PodCliqueScalingGroup](c) {
		if g.Status.UpdateProgress != nil || g.Status.UpdatedReplicas != g.Spec.Replicas {
			c.Fatalf("scaling group %s: %+v", g.Name, g.Status)
		}
	}
	for _, q := range All[*v1alpha1.PodClique](c) {
		if q.Status.UpdateProgress != nil || q.Status.UpdatedReplicas != q.Spec.Replicas {
			c.Fatalf("PodClique %s: %+v", q.Name, q.Status)
		}
	}
}

// revisionOf returns the number and the hash of the only revision of a set.
func revisionOf(c *Cluster, set string) (int64, string) {
	c.t.Helper()
	var own []*appsv1.ControllerRevision
	for _, r := range All[*appsv1.ControllerRevision](c) {
		if r.Labels[v1alpha1.LabelPartOf] == set {
			own = append(own, r)
		}
	}
	if len(own) != 1 {
		c.Fatalf("set %s has %d revisions, want 1", set, len(own))
	}
	return own[0].Revision, strings.TrimPrefix(own[0].Name, set+"-")
}

// Objects of a version that stored no revisions are adopted: no pod is replaced, no object gets a different template,
// and no update begins. A later change of the template is rolled out.
func TestAdoption(t *testing.T) {
	for name, change := range map[string]func(client.Object){
		"as it was left": nil,
		"pods and a PodClique have a hash that a still earlier version computed": func(o client.Object) {
			if l := o.GetLabels(); l[v1alpha1.LabelPodTemplateHash] != "" && l[v1alpha1.LabelPodCliqueSetReplicaIndex] == "1" {
				l[v1alpha1.LabelPodTemplateHash] += "-earlier"
			}
		},
		"one whole set has such hashes": func(o client.Object) {
			if l := o.GetLabels(); l[v1alpha1.LabelPodTemplateHash] != "" && l[v1alpha1.LabelPartOf] == "chat" {
				l[v1alpha1.LabelPodTemplateHash] += "-earlier"
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range int64(3) {
				c := beforeUpdates(t, seed, change)
				wantQuiet(t, c, func() {})
				for _, set := range []string{"chat", "plain", "job"} {
					if number, hash := revisionOf(c, set); number != 1 || hash != *theSet(c, set).Status.CurrentGenerationHash {
						c.Fatalf("set %s has revision %d, %s", set, number, hash)
					}
				}
				before := uids(c)
				wantQuietRestart(t, c)
				Edit(c, theSet(c, "chat"), func(s *v1alpha1.PodCliqueSet) {
					s.Spec.Template.Clique("leader").Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
				})
				c.Advance(10 * time.Minute)
				wantReplaced(c, before, "chat-0-model-", "chat-1-model-")
				if p := theSet(c, "chat").Status.UpdateProgress; p == nil || p.UpdateEndedAt == nil {
					c.Fatalf("the update of the adopted set has not ended: %+v", p)
				}
			}
		})
	}
}

// wantQuietRestart is wantQuiet for a restart of the same version, which writes nothing.
func wantQuietRestart(t *testing.T, c *Cluster) {
	t.Helper()
	before := c.API.version
	wantQuiet(t, c, c.Restart)
	if c.API.version != before {
		c.Fatalf("a restart of the same version wrote %d times", c.API.version-before)
	}
}

func theSet(c *Cluster, name string) *v1alpha1.PodCliqueSet {
	c.t.Helper()
	set := &v1alpha1.PodCliqueSet{}
	if err := c.API.Get(c.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, set); err != nil {
		c.Fatalf("the set: %v", err)
	}
	return set
}

// rewrite changes every object of a kind without the checks of the API, to the form in which an earlier version would
// have created it.
func rewrite[T client.Object](c *Cluster, change func(T)) {
	c.t.Helper()
	for _, o := range All[T](c) {
		table, err := c.API.tableOf(o)
		if err != nil {
			c.Fatalf("%v", err)
		}
		next := o.DeepCopyObject().(T)
		change(next)
		if reflect.DeepEqual(o, next) {
			continue
		}
		c.API.mu.Lock()
		c.API.change(table, o, next)
		c.API.mu.Unlock()
	}
}

// A later version manages the objects of the present version without replacing a pod, even if it adds labels,
// annotations and defaults. New defaults are simulated by removing them from the stored objects.
func TestUpgradeRollsNothing(t *testing.T) {
	dropDefaults := func(spec *corev1.PodSpec) {
		spec.SchedulerName, spec.RestartPolicy, spec.TerminationGracePeriodSeconds = "", "", nil
	}
	revisionWithoutDefaults := func(r *appsv1.ControllerRevision) {
		text := string(r.Data.Raw)
		for _, field := range []string{`"schedulerName":"muster-scheduler"`, `"restartPolicy":"Always"`, `"terminationGracePeriodSeconds":30`} {
			text = strings.ReplaceAll(strings.ReplaceAll(text, ","+field, ""), field+",", "")
		}
		r.Data.Raw = []byte(text)
	}
	setWithoutDefaults := func(s *v1alpha1.PodCliqueSet) {
		for _, t := range s.Spec.Template.CliquesInOrder() {
			dropDefaults(&t.Spec.PodSpec)
		}
	}
	for name, older := range map[string]func(*Cluster){
		"labels": func(c *Cluster) {
			rewrite(c, func(q *v1alpha1.PodClique) {
				q.Labels["grove.io/what-is-gone"] = "x"
				delete(q.Labels, "app.kubernetes.io/name")
			})
			rewrite(c, func(p *corev1.Pod) {
				p.Labels["grove.io/what-is-gone"] = "x"
				delete(p.Labels, "app.kubernetes.io/name")
			})
			rewrite(c, func(r *appsv1.ControllerRevision) {
				r.Labels["grove.io/what-is-gone"] = "x"
				delete(r.Labels, "app.kubernetes.io/name")
			})
		},
		"defaults of the pod spec, which the set has": func(c *Cluster) {
			rewrite(c, func(q *v1alpha1.PodClique) { dropDefaults(&q.Spec.PodSpec) })
			rewrite(c, revisionWithoutDefaults)
		},
		"defaults of the pod spec, which the set has not": func(c *Cluster) {
			rewrite(c, setWithoutDefaults)
			rewrite(c, func(q *v1alpha1.PodClique) { dropDefaults(&q.Spec.PodSpec) })
			rewrite(c, revisionWithoutDefaults)
		},
		"defaults of the set alone": func(c *Cluster) { rewrite(c, setWithoutDefaults) },
		"hashes of templates and revisions computed otherwise": func(c *Cluster) {
			rewrite(c, func(q *v1alpha1.PodClique) { relabel(q) })
			rewrite(c, func(p *corev1.Pod) { relabel(p) })
			rewrite(c, func(r *appsv1.ControllerRevision) {
				text := string(r.Data.Raw)
				for _, q := range All[*v1alpha1.PodClique](c) {
					hash := q.Labels[v1alpha1.LabelPodTemplateHash]
					text = strings.ReplaceAll(text, `"`+strings.TrimPrefix(hash, "other-")+`"`, `"`+hash+`"`)
				}
				r.Data.Raw = []byte(text)
			})
			rewrite(c, func(q *v1alpha1.PodClique) {
				q.Status.CurrentPodTemplateHash = &[]string{q.Labels[v1alpha1.LabelPodTemplateHash]}[0]
			})
		},
		"annotations": func(c *Cluster) {
			rewrite(c, func(q *v1alpha1.PodClique) {
				for k := range q.Annotations {
					if k != v1alpha1.AnnotationTemplateReplicas && k != v1alpha1.AnnotationInitialReplicas && !strings.Contains(k, "attempt") {
						delete(q.Annotations, k)
					}
				}
			})
		},
		"a revision in another form of JSON": func(c *Cluster) {
			rewrite(c, func(r *appsv1.ControllerRevision) {
				r.Data.Raw = []byte(strings.ReplaceAll(strings.Replace(string(r.Data.Raw), `{`, `{"new":{"a":1}, `, 1), `"limits":{"nvidia.com/gpu":"1"}`, `"limits":{"nvidia.com/gpu":"1000m"}`))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range int64(3) {
				c := beforeUpdates(t, seed, nil)
				c.Advance(time.Minute)
				hashes := generationHashes(c)
				c.process.end()
				c.process = nil
				older(c)
				wantQuiet(t, c, c.start)
				if diff := cmp.Diff(hashes, generationHashes(c)); diff != "" {
					c.Fatalf("status.currentGenerationHash (-before +after):\n%s", diff)
				}
			}
		})
	}
}

// relabel gives an object the template hash that another version would have computed.
func relabel(o client.Object) {
	if l := o.GetLabels(); l[v1alpha1.LabelPodTemplateHash] != "" {
		l[v1alpha1.LabelPodTemplateHash] = "other-" + l[v1alpha1.LabelPodTemplateHash]
	}
}

// generationHashes returns the hashes of the revisions that sets have, as text.
func generationHashes(c *Cluster) []string {
	var hashes []string
	for _, s := range All[*v1alpha1.PodCliqueSet](c) {
		hashes = append(hashes, fmt.Sprint(s.Name, " ", *s.Status.CurrentGenerationHash))
	}
	slices.Sort(hashes)
	return hashes
}
