// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/manifests"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

// settings are the changes of a test to the deployed configuration.
type settings struct {
	args  map[string]any // of GangAdmission
	lease map[string]any // of leaderElection
}

// schedulerConfig returns the deployed configuration with the settings.
func schedulerConfig(t *testing.T, s settings) []byte {
	t.Helper()
	var cm corev1.ConfigMap
	if err := yaml.UnmarshalStrict(manifests.SchedulerConfigMap, &cm); err != nil {
		t.Fatalf("reading the deployed configuration: %v", err)
	}
	var config map[string]any
	if err := yaml.Unmarshal([]byte(cm.Data["config.yaml"]), &config); err != nil {
		t.Fatalf("reading the deployed configuration: %v", err)
	}
	maps.Copy(config["leaderElection"].(map[string]any), s.lease)
	for _, profile := range config["profiles"].([]any) {
		for _, plugin := range profile.(map[string]any)["pluginConfig"].([]any) {
			maps.Copy(plugin.(map[string]any)["args"].(map[string]any), s.args)
		}
	}
	out, err := yaml.Marshal(config)
	if err != nil {
		t.Fatalf("writing the configuration: %v", err)
	}
	return out
}

// startWith runs muster-scheduler with other arguments of GangAdmission until the end of the test.
func (c *cluster) startWith(args map[string]any) {
	c.t.Helper()
	var err error
	c.scheduler, err = cp.StartMusterScheduler(c.ctx, controlplane.SchedulerOptions{Config: schedulerConfig(c.t, settings{args: args})})
	c.must(err, "starting muster-scheduler")
}

// restart runs muster-scheduler again after a kill.
func (c *cluster) restart() {
	c.t.Helper()
	c.must(cp.Restart(c.ctx, c.scheduler), "restarting muster-scheduler")
}

// names returns prefix-first to prefix-(end-1).
func names(prefix string, first, end int) []string {
	var out []string
	for i := first; i < end; i++ {
		out = append(out, fmt.Sprintf("%s-%d", prefix, i))
	}
	return out
}

// refuse makes the API server refuse requests until lift is called, or the test ends. refuse and lift return when the
// API server acts accordingly; it observes policies after some time and sends no event about it, so they poll.
//
// Policies are evaluated inside the API server (CEL). Requests for which the expression is true are refused; probe is a
// request without effect for which it is true.
func (c *cluster) refuse(rule admissionv1.Rule, operation admissionv1.OperationType, expression string, probe func(context.Context) error) (lift func()) {
	c.t.Helper()
	const message = "refused by the test"
	name := fmt.Sprintf("%s-%d", c.namespace, time.Now().UnixNano())
	fail := admissionv1.Fail
	policies := cp.Client().AdmissionregistrationV1()
	_, err := policies.ValidatingAdmissionPolicies().Create(c.ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: c.namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{operation}, Rule: rule}}},
			},
			Validations: []admissionv1.Validation{{Expression: "!(" + expression + ")", Message: message}},
		},
	}, metav1.CreateOptions{})
	c.must(err, "creating a policy")
	_, err = policies.ValidatingAdmissionPolicyBindings().Create(c.ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{})
	c.must(err, "creating a policy's binding")

	until := func(refused bool) {
		c.t.Helper()
		ctx, cancel := context.WithTimeout(c.ctx, time.Minute)
		defer cancel()
		for {
			err := probe(ctx)
			if refused == (err != nil && strings.Contains(err.Error(), message)) {
				return
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				c.must(fmt.Errorf("%w (last answer: %w)", ctx.Err(), err), fmt.Sprintf("waiting for a policy (refused: %v)", refused))
			}
		}
	}
	remove := func(ctx context.Context) error {
		err := policies.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		return errors.Join(ignoreNotFound(err), ignoreNotFound(policies.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})))
	}
	c.t.Cleanup(func() { _ = remove(context.Background()) })
	until(true)
	return func() {
		c.t.Helper()
		c.must(remove(c.ctx), "removing a policy")
		until(false)
	}
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// refuseBindings has the API server refuse the bindings of these pods, and bindings to these nodes.
func (c *cluster) refuseBindings(pods, nodes []string) (lift func()) {
	c.t.Helper()
	const probe = "nobody"
	return c.refuse(admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/binding"}},
		admissionv1.Create, fmt.Sprintf("request.name in %s || object.target.name in %s", celList(slices.Concat(pods, []string{probe})), celList(slices.Concat(nodes, []string{probe}))),
		func(ctx context.Context) error {
			return cp.Client().CoreV1().Pods(c.namespace).Bind(ctx, &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: probe}, Target: corev1.ObjectReference{Kind: "Node", Name: probe},
			}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		})
}

// refuseStatus has the API server refuse every status of these PodGroups.
func (c *cluster) refuseStatus(groups ...string) (lift func()) {
	c.t.Helper()
	client := c.dynamic.Resource(podGroups).Namespace(c.namespace)
	return c.refuse(admissionv1.Rule{APIGroups: []string{v2alpha2.GroupName}, APIVersions: []string{"*"}, Resources: []string{"podgroups/status"}},
		admissionv1.Update, "request.name in "+celList(groups),
		func(ctx context.Context) error {
			pg, err := client.Get(ctx, groups[0], metav1.GetOptions{})
			if err != nil {
				return err
			}
			_, err = client.UpdateStatus(ctx, pg, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
}

// refuseDeletions has the API server refuse to delete these pods, but for the test itself.
func (c *cluster) refuseDeletions(pods ...string) (lift func()) {
	c.t.Helper()
	return c.refuse(admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		admissionv1.Delete, fmt.Sprintf("request.name in %s && (request.userInfo.username != 'admin' || request.dryRun)", celList(pods)),
		func(ctx context.Context) error {
			return cp.Client().CoreV1().Pods(c.namespace).Delete(ctx, pods[0], metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		})
}

// celList returns the CEL list of these strings.
func celList(all []string) string { return "['" + strings.Join(all, "', '") + "']" }

// write is one writing request of muster-scheduler, as the audit log has it.
type write struct {
	at         time.Time
	verb       string
	resource   string // pods/binding
	name       string
	code       int
	credential string // one per start of a scheduler
}

// writes returns the writes of all muster-schedulers about this namespace since a time, in their order.
func (c *cluster) writes(since time.Time) []write {
	c.t.Helper()
	f, err := os.Open(cp.AuditLog())
	c.must(err, "opening the audit log")
	defer f.Close()
	_, err = f.Seek(c.audited, io.SeekStart)
	c.must(err, "reading the audit log")
	var out []write
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb                     string
			RequestReceivedTimestamp time.Time
			ObjectRef                struct{ Resource, Subresource, Namespace, Name string }
			ResponseStatus           struct{ Code int }
			User                     struct{ Extra map[string][]string }
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.ObjectRef.Namespace != c.namespace || e.RequestReceivedTimestamp.Before(since) {
			continue // the first line and the last may be incomplete
		}
		w := write{at: e.RequestReceivedTimestamp, verb: e.Verb, resource: e.ObjectRef.Resource, name: e.ObjectRef.Name, code: e.ResponseStatus.Code,
			credential: strings.Join(e.User.Extra["authentication.kubernetes.io/credential-id"], ",")}
		if e.ObjectRef.Subresource != "" {
			w.resource += "/" + e.ObjectRef.Subresource
		}
		out = append(out, w)
	}
	c.must(lines.Err(), "reading the audit log")
	slices.SortStableFunc(out, func(a, b write) int { return a.at.Compare(b.at) })
	return out
}

// count returns how many of the writes are to this resource, and how many of those the API server did not accept.
func count(writes []write, resource string) (all, refused int) {
	for _, w := range writes {
		if w.resource == resource {
			all++
			if w.code >= 300 {
				refused++
			}
		}
	}
	return all, refused
}

// untilRefusedBindings waits until the API server has refused so many bindings since a time. Nobody can watch an audit
// log, hence the polling.
func (c *cluster) untilRefusedBindings(n int, since time.Time, within time.Duration) {
	c.t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		if _, refused := count(c.writes(since), "pods/binding"); refused >= n {
			return
		}
		if time.Now().After(deadline) {
			c.must(context.DeadlineExceeded, fmt.Sprintf("waiting for %d refused bindings", n))
		}
	}
}

// owner creates an object that can be the controller of pods, but replaces none.
func (c *cluster) owner(name string) metav1.OwnerReference {
	c.t.Helper()
	cm, err := cp.Client().CoreV1().ConfigMaps(c.namespace).Create(c.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	c.must(err, "creating an owner")
	yes := true
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: cm.UID, Controller: &yes}
}

// createOwned creates a pod with this controller.
func (c *cluster) createOwned(w *wrappers.PodWrapper, owner metav1.OwnerReference) *corev1.Pod {
	c.t.Helper()
	pod := w.Obj()
	pod.OwnerReferences = []metav1.OwnerReference{owner}
	created, err := cp.Client().CoreV1().Pods(c.namespace).Create(c.ctx, pod, metav1.CreateOptions{})
	c.must(err, "creating pod "+pod.Name)
	return created
}

// createOwnedGang is createGang with pods that have a controller.
func (c *cluster) createOwnedGang(name string, n int, gpus int64) {
	c.t.Helper()
	owner := c.owner(name)
	c.apply(c.group(name).MinMember(int32(n)))
	for _, pod := range names(name, 0, n) {
		c.createOwned(c.pod(pod, name, gpus), owner)
	}
}

// replicaSet creates a PodGroup that needs n pods, and a ReplicaSet that keeps n pods of it there.
func (c *cluster) replicaSet(name string, n int32, gpus int64) {
	c.t.Helper()
	c.apply(c.group(name).MinMember(n))
	pod := c.pod("", name, gpus).Label("replica-set", name).Obj()
	selector := map[string]string{"replica-set": name}
	_, err := cp.Client().AppsV1().ReplicaSets(c.namespace).Create(c.ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations}, Spec: pod.Spec}},
	}, metav1.CreateOptions{})
	c.must(err, "creating ReplicaSet "+name)
	c.t.Cleanup(func() { c.deleteReplicaSet(name) })
}

// deleteReplicaSet deletes a ReplicaSet; its pods go with it.
func (c *cluster) deleteReplicaSet(name string) {
	_ = cp.Client().AppsV1().ReplicaSets(c.namespace).Delete(context.Background(), name, metav1.DeleteOptions{})
}

// placeByHand creates a pod with a node, as a DaemonSet's or another scheduler's.
func (c *cluster) placeByHand(w *wrappers.PodWrapper, node string) *corev1.Pod {
	c.t.Helper()
	return c.create(w.SchedulerName("by-hand").Node(node))
}

// uids returns the UIDs of the bound pods of a gang, by name.
func (c *cluster) uids(group string) map[string]types.UID {
	c.t.Helper()
	out := map[string]types.UID{}
	for _, p := range c.pods() {
		if p.Annotations[v2alpha2.PodGroupAnnotation] == group && p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
			out[p.Name] = p.UID
		}
	}
	return out
}

// untilEvent waits until there is an event with this reason about the object, and returns its note.
func (c *cluster) untilEvent(object, reason string, within time.Duration) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, within)
	defer cancel()
	note := ""
	err := controlplane.Until(ctx, cp.Client().CoreV1().Events(c.namespace), metav1.ListOptions{}, func(events []*corev1.Event) bool {
		for _, e := range events {
			if e.InvolvedObject.Name == object && e.Reason == reason {
				note = e.Message
				return true
			}
		}
		return false
	})
	c.must(err, fmt.Sprintf("waiting for event %s about %s", reason, object))
	return note
}

// median returns the middle of the times.
func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// ms rounds a duration for the log.
func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
