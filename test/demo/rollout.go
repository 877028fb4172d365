// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/test/controlplane"
)

// The images of the rollouts. The sample has another one.
const (
	newImage    = "busybox:1.38"
	brokenImage = controlplane.BrokenImage
)

// rolledCliques are the cliques of chat whose image changes: a standalone one, and both of a scaling group.
var rolledCliques = []string{"frontend", "pleader", "pworker"}

// The numbers of pods and units of chat while it has two replicas, and what the steps of the rollout expect.
const (
	servicePods      = 10 // of a replica
	frontends        = 4
	prefillReplicas  = 4
	decodePods       = 8
	brokenPods       = 3 // a frontend, a leader and a worker
	giveUpInSeconds  = 3
	waitsForComplete = "--for=condition=Progressing=False"
)

// rollout returns the steps in which the template of chat changes.
func rollout() []step {
	table := []string{"get", "podcliqueset", chat, "-o", "wide"}
	update := func(ctx context.Context, st *stage) error {
		if err := st.applyChat(ctx, newImage); err != nil {
			return err
		}
		return st.untilRolledOut(ctx, newImage)
	}
	return []step{
		{
			title: "podcliqueset.yaml is applied with a new image for frontend and prefill",
			why: "The update replaces one unit at a time. It begins with the replica of the highest index, chat-1: its frontends one after " +
				"the other, and its prefill replicas, each as a whole. chat-0 follows. No GPU is free, so each new pod uses the GPUs of the " +
				"pod that it replaces. kubectl wait " + waitsForComplete + " returns when the update is complete.",
			do: update,
			throughout: []claim{
				{"at least 3 of the 4 prefill replicas and 3 of the 4 frontends are ready", oneAtATime},
				{"chat-0 is ready and unchanged until chat-1 is done", highestFirst(newImage)},
				{"a prefill leader has the same image as its worker", wholeReplicas},
				{"decode, whose template has not changed, has all 8 pods ready", decodeServes},
			},
			claims: append(bothServe(), rolledOut(newImage)),
			show:   table,
		},
		{
			title: "An image that does not exist is applied",
			why: fmt.Sprintf("The update replaces the first frontend and the first prefill replica. The new pods cannot start, and the update stops: "+
				"it deletes no other pod before these are ready. The status and kubectl get show what it waits for. kubectl wait gives up "+
				"after %d seconds.", giveUpInSeconds),
			do: func(ctx context.Context, st *stage) error {
				if err := st.applyChat(ctx, brokenImage); err != nil {
					return err
				}
				return st.untilStuck(ctx)
			},
			throughout: []claim{
				{"the other 17 pods are ready", atLeast(2*servicePods - brokenPods)},
				{"chat-0 is ready and unchanged", func(s scene) bool { return untouched(s, 0, newImage) }},
			},
			claims: []claim{
				progressing(v1alpha1.ReasonWaitingForReadiness),
				{"3 pods of chat-1 have the broken image: a frontend, and a leader with its worker", func(s scene) bool {
					return slices.Equal(cliquesWith(s, brokenImage), []string{"frontend", "pleader", "pworker"})
				}},
				serving(2*servicePods - brokenPods), available(),
			},
			show: table,
		},
		{
			title:      "The previous template is applied again",
			why:        "This undoes the update. The 3 broken pods are replaced; all others already have this template.",
			do:         update,
			throughout: []claim{{"the other 17 pods are ready", atLeast(2*servicePods - brokenPods)}},
			claims:     append(bothServe(), rolledOut(newImage)),
			show:       table,
		},
	}
}

// bothServe claims that both replicas of chat are complete, and leave no GPU free.
func bothServe() []claim {
	return []claim{serving(2 * servicePods), admitted(chatGang, servicePods), admitted(chatGang1, servicePods), available(), free(0)}
}

// applyChat applies the sample with two replicas, and with this image in the cliques that are rolled out; "" keeps theirs.
func (st *stage) applyChat(ctx context.Context, image string) error {
	var changed []*unstructured.Unstructured
	for _, object := range st.chat {
		object = object.DeepCopy()
		if err := unstructured.SetNestedField(object.Object, int64(2), "spec", "replicas"); err != nil {
			return err
		}
		cliques, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "cliques")
		if err != nil {
			return err
		}
		for _, clique := range cliques {
			fields := clique.(map[string]any)
			if image == "" || !slices.Contains(rolledCliques, fields["name"].(string)) {
				continue
			}
			containers, _, err := unstructured.NestedSlice(fields, "spec", "podSpec", "containers")
			if err != nil {
				return err
			}
			containers[0].(map[string]any)["image"] = image
			if err := unstructured.SetNestedSlice(fields, containers, "spec", "podSpec", "containers"); err != nil {
				return err
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, cliques, "spec", "template", "cliques"); err != nil {
			return err
		}
		changed = append(changed, object)
	}
	return st.cp.Apply(ctx, changed...)
}

// untilRolledOut returns when kubectl wait does. It fails if the update is not complete then.
func (st *stage) untilRolledOut(ctx context.Context, image string) error {
	if _, err := st.kubectl(ctx, "wait", "podcliqueset/"+chat, waitsForComplete, "--timeout="+patience.String()); err != nil {
		return err
	}
	content, err := st.kubectl(ctx, "get", "podcliqueset", chat, "-o", "json")
	if err != nil {
		return err
	}
	set := &v1alpha1.PodCliqueSet{}
	if err := json.Unmarshal([]byte(content), set); err != nil {
		return err
	}
	pods, err := st.cp.Client().CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelPartOf + "=" + chat})
	if err != nil {
		return err
	}
	s := scene{sets: []*v1alpha1.PodCliqueSet{set}}
	for i := range pods.Items {
		s.pods = append(s.pods, &pods.Items[i])
	}
	if !rolledOut(image).holds(s) {
		return fmt.Errorf("kubectl wait %s returned before the update was complete", waitsForComplete)
	}
	return nil
}

// untilStuck returns when kubectl wait has given up waiting for the update. It fails if that is complete.
func (st *stage) untilStuck(ctx context.Context) error {
	_, err := st.kubectl(ctx, "wait", "podcliqueset/"+chat, waitsForComplete, fmt.Sprintf("--timeout=%ds", giveUpInSeconds))
	switch {
	case err == nil:
		return fmt.Errorf("kubectl wait %s returned, though the image cannot be pulled", waitsForComplete)
	case strings.Contains(err.Error(), "timed out waiting for the condition"):
		return nil
	}
	return err
}

// kubectl runs kubectl as the administrator, and returns its standard output.
func (st *stage) kubectl(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join("bin", "kubectl"), arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+st.cp.AdminKubeconfig())
	output, err := command.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w", strings.Join(arguments, " "), err)
	}
	return string(output), nil
}

// shownColumns are the columns of kubectl get podcliqueset that fit into the width of the demo.
var shownColumns = []string{"NAME", "REPLICAS", "SCHEDULED", "AVAILABLE", "UPDATED", "UPDATE", "PHASE"}

// pickColumns returns columns of a table as kubectl get prints it, aligned as kubectl does.
func pickColumns(table string, names []string) string {
	lines := strings.Split(strings.TrimRight(table, "\n"), "\n")
	starts := regexp.MustCompile(`\S+`).FindAllStringIndex(lines[0], -1)
	picked := make([]string, len(lines))
	for i, at := range starts {
		if !slices.Contains(names, lines[0][at[0]:at[1]]) {
			continue
		}
		var cells []string
		widest := 0
		for _, line := range lines {
			end := len(line)
			if i+1 < len(starts) {
				end = min(end, starts[i+1][0])
			}
			cell := strings.TrimSpace(line[min(at[0], end):end])
			cells, widest = append(cells, cell), max(widest, len(cell))
		}
		for k, cell := range cells {
			picked[k] += fmt.Sprintf("%-*s   ", widest, cell)
		}
	}
	for k := range picked {
		picked[k] = strings.TrimRight(picked[k], " ") + "\n"
	}
	return strings.Join(picked, "")
}

// serves reports whether the pod is ready and not being deleted.
func serves(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && controlplane.PodReady(pod) }

// count returns how many of the pods satisfy is.
func count(pods []*corev1.Pod, is func(*corev1.Pod) bool) int {
	n := 0
	for _, pod := range pods {
		if is(pod) {
			n++
		}
	}
	return n
}

// cliqueOf returns the name that the clique of a pod of chat has in the template, and the index of its replica of chat.
func cliqueOf(pod *corev1.Pod) (name string, replica int) {
	replica, err := strconv.Atoi(pod.Labels[v1alpha1.LabelPodCliqueSetReplicaIndex])
	if err != nil {
		return "", -1
	}
	full := pod.Labels[v1alpha1.LabelPodClique]
	return full[strings.LastIndex(full, "-")+1:], replica
}

// of returns the pods of chat of this clique.
func (s scene) of(clique string) []*corev1.Pod {
	return slices.DeleteFunc(ofSet(s.pods, chat), func(pod *corev1.Pod) bool {
		name, _ := cliqueOf(pod)
		return name != clique
	})
}

func image(pod *corev1.Pod) string { return pod.Spec.Containers[0].Image }

// cliquesWith names the cliques of the pods that have this image, one name per pod, sorted.
func cliquesWith(s scene, of string) []string {
	var names []string
	for _, pod := range ofSet(s.pods, chat) {
		if image(pod) == of {
			name, _ := cliqueOf(pod)
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// oneAtATime reports whether at most one unit of each kind is not ready.
func oneAtATime(s scene) bool {
	whole := 0
	for replica := range 2 {
		for i := range prefillReplicas / 2 {
			if pods := s.below(naming.ScalingGroup(chat, replica, "prefill"), i); len(pods) == 2 && count(pods, serves) == 2 {
				whole++
			}
		}
	}
	return whole >= prefillReplicas-1 && count(s.of("frontend"), serves) >= frontends-1
}

// untouched reports whether all pods of a replica of chat serve, with this image in the cliques that are rolled out.
func untouched(s scene, replica int, with string) bool {
	return hasServing(s, replica, func(pod *corev1.Pod) bool { return image(pod) == with })
}

// hasServing reports whether all pods of a replica of chat serve, and those of the cliques that are rolled out satisfy is.
func hasServing(s scene, replica int, is func(*corev1.Pod) bool) bool {
	return servicePods == count(ofSet(s.pods, chat), func(pod *corev1.Pod) bool {
		name, of := cliqueOf(pod)
		return of == replica && serves(pod) && (!slices.Contains(rolledCliques, name) || is(pod))
	})
}

// highestFirst reports whether chat-0 serves without the image, or chat-1 serves with it.
func highestFirst(with string) func(scene) bool {
	return func(s scene) bool {
		return hasServing(s, 0, func(pod *corev1.Pod) bool { return image(pod) != with }) || untouched(s, 1, with)
	}
}

// wholeReplicas reports whether no replica of prefill has pods of two templates.
func wholeReplicas(s scene) bool {
	for replica := range 2 {
		for i := range prefillReplicas / 2 {
			pods := s.below(naming.ScalingGroup(chat, replica, "prefill"), i)
			if slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return image(pod) != image(pods[0]) }) {
				return false
			}
		}
	}
	return true
}

func decodeServes(s scene) bool {
	return count(s.of("dleader"), serves)+count(s.of("dworker"), serves) == decodePods
}

// atLeast reports whether at least this many pods of chat serve.
func atLeast(pods int) func(scene) bool {
	return func(s scene) bool { return count(ofSet(s.pods, chat), serves) >= pods }
}

// serving claims that exactly this many pods of chat serve.
func serving(pods int) claim {
	return claim{fmt.Sprintf("%d pods are ready", pods), func(s scene) bool { return count(ofSet(s.pods, chat), serves) == pods }}
}

// progressing claims that the update is in progress, with this reason.
func progressing(reason string) claim {
	return claim{"the status reports that the update waits: Progressing, reason " + reason, func(s scene) bool {
		set := s.set(chat)
		if set == nil {
			return false
		}
		c := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionProgressing)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reason && c.ObservedGeneration == set.Generation &&
			set.Status.UpdateProgress != nil && set.Status.UpdateProgress.UpdateEndedAt == nil && set.Status.UpdatedReplicas < 2
	}}
}

// rolledOut claims that the update is complete, and that every pod of the cliques that are rolled out has this image and
// serves.
func rolledOut(with string) claim {
	return claim{"the update is complete: frontend and prefill of both replicas have " + with, func(s scene) bool {
		set := s.set(chat)
		if set == nil || set.Status.UpdatedReplicas != 2 || set.Status.ObservedGeneration != set.Generation ||
			set.Status.UpdateProgress == nil || set.Status.UpdateProgress.UpdateEndedAt == nil {
			return false
		}
		c := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionProgressing)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonUpdateComplete &&
			untouched(s, 0, with) && untouched(s, 1, with) && len(ofSet(s.pods, chat)) == 2*servicePods
	}}
}

// updateOf summarizes the progress of an update of the set in a few words; "" before the first update.
func updateOf(set *v1alpha1.PodCliqueSet) string {
	c := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionProgressing)
	if c == nil || set.Status.UpdateProgress == nil {
		return ""
	}
	return fmt.Sprintf(", %d/%d updated, %s", set.Status.UpdatedReplicas, set.Spec.Replicas, c.Reason)
}

// unitsOf describes the unit that an update is replacing, for each PodClique and scaling group, by name.
func (s scene) unitsOf() map[string]string {
	units := map[string]string{}
	for _, group := range s.scalingGroups {
		if p := group.Status.UpdateProgress; p != nil && p.UpdateEndedAt == nil && p.ReadyReplicaIndicesSelectedToUpdate != nil && p.ReadyReplicaIndicesSelectedToUpdate.Current != nil {
			units[group.Name] = fmt.Sprintf("replacing replica %d", *p.ReadyReplicaIndicesSelectedToUpdate.Current)
		}
	}
	for _, clique := range s.cliques {
		if p := clique.Status.UpdateProgress; p != nil && p.UpdateEndedAt == nil && p.ReadyPodsSelectedToUpdate != nil {
			units[clique.Name] = fmt.Sprintf("replacing pod %s", p.ReadyPodsSelectedToUpdate.Current)
		}
	}
	return units
}
