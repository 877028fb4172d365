// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/test/podlife"
)

// inWords returns what a pod's status says: phase, whether it is ready or terminating, and its containers.
func inWords(pod *corev1.Pod) string {
	var text strings.Builder
	text.WriteString(string(pod.Status.Phase))
	if PodReady(pod) {
		text.WriteString(" ready")
	}
	if pod.DeletionTimestamp != nil {
		text.WriteString(" terminating")
	}
	for _, c := range append(slices.Clone(pod.Status.InitContainerStatuses), pod.Status.ContainerStatuses...) {
		fmt.Fprintf(&text, "; %s ", c.Name)
		switch {
		case c.State.Running != nil:
			text.WriteString("running")
		case c.State.Terminated != nil:
			fmt.Fprintf(&text, "exited %d", c.State.Terminated.ExitCode)
		case c.State.Waiting != nil:
			text.WriteString(c.State.Waiting.Reason)
		}
	}
	return text.String()
}

// story watches a pod. It returns a function that waits until the pod is as these words say, or until it was in n
// states, and returns these.
func story(t *testing.T, namespace, name string) (until func(words string, n int) []string) {
	t.Helper()
	var (
		mu      sync.Mutex
		lines   []string
		changed = make(chan struct{}, 1)
	)
	tell := func(words string) {
		mu.Lock()
		defer mu.Unlock()
		if len(lines) == 0 || lines[len(lines)-1] != words {
			lines = append(lines, words)
		}
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	watching := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		first := true
		_ = Until(ctx, shared.Client().CoreV1().Pods(namespace), metav1.ListOptions{FieldSelector: "metadata.name=" + name}, func(pods []*corev1.Pod) bool {
			if first {
				close(watching)
				first = false
			}
			if len(pods) == 1 {
				tell(inWords(pods[0]))
			} else if len(lines) > 0 {
				tell("gone")
			}
			return false
		})
	}()
	<-watching
	return func(words string, n int) []string {
		t.Helper()
		limit := time.After(10 * time.Second)
		for {
			mu.Lock()
			now := slices.Clone(lines)
			mu.Unlock()
			if n > 0 && len(now) >= n {
				return now[:n]
			}
			if len(now) > 0 && now[len(now)-1] == words {
				return now
			}
			select {
			case <-changed:
			case <-limit:
				t.Errorf("waiting for %q, or %d states", words, n)
				return now
			}
		}
	}
}

// What happens to a pod by itself, or by acts, from its creation.
func TestKubeletsRunPods(t *testing.T) {
	t.Parallel()
	const namespace = "kubelets"
	newNamespace(t, shared, namespace)
	node := newNodes(t, shared, NodeOptions{Count: 1, NamePrefix: "kubelets"})[0]
	k, pods := shared.Kubelets(), shared.Client().CoreV1().Pods(namespace)
	const short = 30 * time.Millisecond

	for image, program := range map[string]podlife.Program{
		"slow":    {StartsAfter: short},
		"fades":   {UnreadyAfter: 2 * short},
		"ignores": {StopsAfter: time.Hour},
	} {
		k.SetProgram(image, program)
	}
	remove := func(grace ...int64) func(context.Context, string) error {
		return func(ctx context.Context, name string) error {
			options := metav1.DeleteOptions{}
			if len(grace) > 0 {
				options.GracePeriodSeconds = &grace[0]
			}
			return pods.Delete(ctx, name, options)
		}
	}
	annotate := func(key, value string) func(context.Context, string) error {
		return func(ctx context.Context, name string) error {
			return shared.AnnotatePod(ctx, namespace, name, map[string]string{key: value})
		}
	}
	type act struct {
		when string // the pod is so
		do   func(ctx context.Context, pod string) error
	}
	obeys := map[string]string{StopCodeAnnotation: "0", LingerAnnotation: short.String()}
	for name, tc := range map[string]struct {
		annotations map[string]string
		inits       []corev1.Container
		image       string
		finalizers  []string
		acts        []act
		want        []string // all that it was, from its creation
	}{
		"starts": {
			image: "slow",
			want:  []string{"Pending", "Pending; main ContainerCreating", "Running ready; main running"},
		},
		"starts at once after an init container of any image": {
			inits: []corev1.Container{{Name: "init", Image: "any"}}, image: "any",
			want: []string{"Pending", "Running ready; init exited 0; main running"},
		},
		"ready for a while": {image: "fades", want: []string{"Pending", "Running ready; main running", "Running; main running"}},
		"readiness fails, and passes": {
			image: "any",
			acts: []act{
				{"Running ready; main running", annotate(ReadyAnnotation, "false")},
				{"Running; main running", annotate(ReadyAnnotation, "true")},
			},
			want: []string{"Pending", "Running ready; main running", "Running; main running", "Running ready; main running"},
		},
		"deleted": {
			image: "any", acts: []act{{"Running ready; main running", remove()}},
			want: []string{"Pending", "Running ready; main running", "Running ready terminating; main running", "Failed terminating; main exited 143", "gone"},
		},
		"deleted, and exits with 0": {
			annotations: obeys, image: "any", acts: []act{{"Running ready; main running", remove()}},
			want: []string{"Pending", "Running ready; main running", "Running ready terminating; main running", "Succeeded terminating; main exited 0", "gone"},
		},
		"deleted, and lingers by annotation": {
			annotations: map[string]string{LingerAnnotation: "100ms", StopCodeAnnotation: "7"}, image: "ignores",
			acts: []act{{"Running ready; main running", remove()}},
			want: []string{"Pending", "Running ready; main running", "Running ready terminating; main running", "Failed terminating; main exited 7", "gone"},
		},
		"deleted, and killed when its grace period is over": {
			image: "ignores", acts: []act{{"Running ready; main running", remove(1)}},
			want: []string{"Pending", "Running ready; main running", "Running ready terminating; main running", "Failed terminating; main exited 137", "gone"},
		},
		"deleted by force": {
			image: "ignores", acts: []act{{"Running ready; main running", remove(0)}},
			want: []string{"Pending", "Running ready; main running", "Running ready terminating; main running", "gone"},
		},
		"deleted by force while it lingers": {
			image: "ignores", acts: []act{{"Running ready; main running", remove()}, {"Running ready terminating; main running", remove(0)}},
			want: []string{"Pending", "Running ready; main running", "Running ready terminating; main running", "gone"},
		},
		"deleted, and kept by a finalizer": {
			annotations: obeys, image: "any", finalizers: []string{"test.example/keep"},
			acts: []act{
				{"Running ready; main running", remove()},
				{"Succeeded terminating; main exited 0", func(ctx context.Context, name string) error {
					_, err := pods.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
					return err
				}},
			},
			want: []string{"Pending", "Running ready; main running", "Running ready terminating; main running", "Succeeded terminating; main exited 0", "gone"},
		},
		"deleted by force, and kept by a finalizer": {
			image: "ignores", finalizers: []string{"test.example/keep"},
			acts: []act{
				{"Running ready; main running", remove(0)},
				{"Failed terminating; main exited 137", func(ctx context.Context, name string) error {
					_, err := pods.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
					return err
				}},
			},
			want: []string{"Pending", "Running ready; main running", "Running ready terminating; main running", "Failed terminating; main exited 137", "gone"},
		},
		"deleted, and stuck beyond its grace period": {
			annotations: map[string]string{StuckAnnotation: "true"}, image: "any",
			acts: []act{
				{"Running ready; main running", remove(1)},
				{"Running ready terminating; main running", func(ctx context.Context, name string) error {
					<-time.After(1500 * time.Millisecond) // longer than its grace period
					return annotate(StuckAnnotation, "false")(ctx, name)
				}},
			},
			want: []string{"Pending", "Running ready; main running", "Running ready terminating; main running", "Failed terminating; main exited 143", "gone"},
		},
		"deleted before it starts": {
			annotations: map[string]string{HoldAnnotation: "true"}, image: "any", acts: []act{{"Pending", remove()}},
			want: []string{"Pending", "Pending terminating", "Failed terminating; main exited 137", "gone"},
		},
		"image cannot be pulled": {image: BrokenImage, want: []string{"Pending", "Pending; main ErrImagePull"}},
		"ended by annotation, whatever its restart policy": {
			annotations: map[string]string{ExitCodeAnnotation: "137", ExitAfterAnnotation: "50ms"}, image: "any",
			want: []string{"Pending", "Running ready; main running", "Failed; main exited 137"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Name: strings.ToLower(strings.NewReplacer(" ", "-", ",", "").Replace(name)), Annotations: tc.annotations, Finalizers: tc.finalizers,
				},
				Spec: corev1.PodSpec{
					NodeName: node, InitContainers: tc.inits, Containers: []corev1.Container{{Name: "main", Image: tc.image}},
				},
			}
			until := story(t, namespace, pod.Name)
			if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, act := range tc.acts {
				until(act.when, 0)
				if err := act.do(ctx, pod.Name); err != nil {
					t.Fatalf("when it was %q: %v", act.when, err)
				}
			}
			got := until("", len(tc.want))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("its story differs (-want +got):\n%s", diff)
			}
		})
	}
}

// Every time that a kubelet writes is of its node's clock.
func TestKubeletClocks(t *testing.T) {
	t.Parallel()
	const namespace = "clocks"
	newNamespace(t, shared, namespace)
	for name, fast := range map[string]time.Duration{"fast": 5 * time.Minute, "slow": -3 * time.Hour, "right": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			node := newNodes(t, shared, NodeOptions{Count: 1, NamePrefix: "clock-" + name})[0]
			shared.Kubelets().SetClock(node, fast)
			pod := newPod(t, shared, namespace, node, nil)
			if err := shared.untilPod(ctx, namespace, pod.Name, PodReady); err != nil {
				t.Fatal(err)
			}
			if err := shared.ExitPod(ctx, namespace, pod.Name, 1); err != nil {
				t.Fatal(err)
			}
			pod, err := shared.Client().CoreV1().Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			terminated := pod.Status.ContainerStatuses[0].State.Terminated
			times := map[string]metav1.Time{"startTime": *pod.Status.StartTime, "startedAt": terminated.StartedAt, "finishedAt": terminated.FinishedAt}
			for _, c := range pod.Status.Conditions {
				if c.Type != corev1.PodScheduled {
					times[string(c.Type)] = c.LastTransitionTime
				}
			}
			if len(times) != 7 {
				t.Errorf("%d times, want 7: %v", len(times), times)
			}
			for what, at := range times {
				if off := time.Until(at.Time) - fast; off > time.Second || off < -20*time.Second {
					t.Errorf("%s is %s off its node's clock", what, off)
				}
			}
		})
	}
}

// A node that is dead reports nothing. When it is back its pods are as they became meanwhile: those that were deleted
// get SIGTERM and are gone, those that exited are reported with the time of their exit, the others are ready.
func TestKubeletOfADeadNode(t *testing.T) {
	t.Parallel()
	const namespace = "dead"
	ctx := t.Context()
	newNamespace(t, shared, namespace)
	nodes := newNodes(t, shared, NodeOptions{Count: 2, NamePrefix: "dead"})
	k, pods := shared.Kubelets(), shared.Client().CoreV1().Pods(namespace)
	deleted, exits, stays := newPod(t, shared, namespace, nodes[0], nil),
		newPod(t, shared, namespace, nodes[0], map[string]string{ExitCodeAnnotation: "4", ExitAfterAnnotation: "2s"}), newPod(t, shared, namespace, nodes[0], nil)
	for _, pod := range []*corev1.Pod{deleted, exits, stays} {
		if err := shared.untilPod(ctx, namespace, pod.Name, PodReady); err != nil {
			t.Fatal(err)
		}
	}
	if err := shared.LoseNode(ctx, nodes[0]); err != nil {
		t.Fatal(err)
	}
	died := time.Now()
	if err := pods.Delete(ctx, deleted.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](1)}); err != nil {
		t.Fatal(err)
	}
	<-time.After(3 * time.Second) // nothing is reported, though both pods would have ended
	for _, name := range []string{deleted.Name, exits.Name, stays.Name} {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil || pod.Status.Phase != corev1.PodRunning || PodReady(pod) {
			t.Errorf("%v, pod %s is %s, want it running and not ready", err, name, inWords(pod))
		}
	}
	k.SetClock(nodes[1], time.Minute) // of another node: it does not matter
	if err := shared.RestoreNode(ctx, nodes[0]); err != nil {
		t.Fatal(err)
	}
	restored := time.Now()
	if err := Until(ctx, pods, metav1.ListOptions{}, func(all []*corev1.Pod) bool {
		return !slices.ContainsFunc(all, func(p *corev1.Pod) bool { return p.Name == deleted.Name })
	}); err != nil {
		t.Fatal(err)
	}
	if err := shared.untilPod(ctx, namespace, stays.Name, PodReady); err != nil {
		t.Fatal(err)
	}
	if err := shared.untilPod(ctx, namespace, exits.Name, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed }); err != nil {
		t.Fatal(err)
	}
	pod, err := pods.Get(ctx, exits.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if at := pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt; at.Time.After(restored.Add(-500*time.Millisecond)) || at.Time.Before(died.Add(-time.Second)) {
		t.Errorf("it exited at %s; its node died at %s, and was back at %s", at, died, restored)
	}
}

// A dead node of which nobody says so is unreachable when its lease has expired.
func TestLeaseOfADeadNodeExpires(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cp, err := Start(ctx, Options{WithControllerManager: true, WithKubelets: true, NodeLease: 4 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer cp.Stop()
	nodes := newNodes(t, cp, NodeOptions{Count: 2})
	cp.Kubelets().Kill(nodes[0])
	if err := untilNamed(ctx, cp.client.CoreV1().Nodes(), nodes[0], func(node *corev1.Node) bool { return !nodeReady(node) }); err != nil {
		t.Fatal(err)
	}
	alive, err := cp.Client().CoreV1().Nodes().Get(ctx, nodes[1], metav1.GetOptions{})
	if err != nil || !nodeReady(alive) {
		t.Errorf("%v, the other node is not ready: %+v", err, alive.Status.Conditions)
	}
	cp.Kubelets().Revive(nodes[0])
	if err := cp.waitForNodes(ctx, nodes...); err != nil {
		t.Fatal(err)
	}
}

// 1,000 pods on 10 nodes become ready, and are gone again.
func TestKubeletsOfAThousandPods(t *testing.T) {
	const namespace, count = "thousand", 1000
	ctx := t.Context()
	newNamespace(t, shared, namespace)
	nodes := newNodes(t, shared, NodeOptions{Count: 10, NamePrefix: "thousand"})
	pods := shared.Client().CoreV1().Pods(namespace)
	began := time.Now()
	if err := InParallel(count, 16, func(i int) error {
		_, err := pods.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i)},
			Spec:       corev1.PodSpec{NodeName: nodes[i%len(nodes)], Containers: []corev1.Container{{Name: "main", Image: "any"}}},
		}, metav1.CreateOptions{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	created := time.Since(began)
	untilAll := func(done func([]*corev1.Pod) bool) {
		t.Helper()
		if err := Until(ctx, pods, metav1.ListOptions{}, done); err != nil {
			t.Fatal(err)
		}
	}
	untilAll(func(all []*corev1.Pod) bool {
		return len(all) == count && !slices.ContainsFunc(all, func(p *corev1.Pod) bool { return !PodReady(p) })
	})
	ready := time.Since(began)
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	untilAll(func(all []*corev1.Pod) bool { return len(all) == 0 })
	t.Logf("created within %s, ready within %s, gone within %s", created, ready, time.Since(began))
}
