// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/muster-project/muster/manifests"
	"github.com/muster-project/muster/pkg/snapshot"
	"github.com/muster-project/muster/test/wrappers"
)

// The guide has every command and every flag of its own, and its screens, and that of README, are those of the golden
// files.
func TestGuide(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(data)
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	check := func(cmd *cobra.Command) {
		if !strings.Contains(guide, "\n## "+cmd.Name()+"\n") {
			t.Errorf("docs/cli.md has no section about %s", cmd.Name())
		}
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(guide, "--"+f.Name) && !strings.Contains(guide, " -"+f.Shorthand+" ") {
				t.Errorf("docs/cli.md does not name --%s of %s", f.Name, cmd.Name())
			}
		})
	}
	for _, cmd := range NewCommand("kubectl-muster", Streams{}).Commands() {
		check(cmd)
	}
	for _, name := range []string{"cordoned-why-mid-80", "topology-tree-chat-80", "cordoned-top-80"} {
		screen, err := os.ReadFile("testdata/" + name + ".golden")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(guide, "```\n"+string(screen)+"```") {
			t.Errorf("docs/cli.md has another screen than testdata/%s.golden", name)
		}
		if name == "cordoned-why-mid-80" && !strings.Contains(string(readme), "```sh\nkubectl muster why mid\n```\n\n```\n"+string(screen)+"```") {
			t.Errorf("README.md has another screen than testdata/%s.golden", name)
		}
	}
}

// kubectl completes by what a plugin prints for __complete.
func TestCompletion(t *testing.T) {
	t.Parallel()
	file := scenes["cordoned"]().file(t)
	for args, want := range map[string]string{
		"why m": "mid\n:4\n", "tree ": "full\nmid\n:4\n", "tree mid ": ":4\n", "what-if --drain node-0007": "node-0007\n:4\n",
		"why -n web m": ":4\n", "top -o ": "json\nyaml\n:4\n", "do": "doctor\tCheck whether Muster works: CRDs, rights, leases, webhooks, pods of no scheduler\n:4\n",
	} {
		code, out, _ := run(t, 80, append([]string{"__complete", "--snapshot", file, "-n", "ml"}, strings.Split(args, " ")...)...)
		if code != 0 || out != want {
			t.Errorf("%q is completed by %q, exit code %d, want %q", args, out, code, want)
		}
	}
	if code, out, _ := run(t, 80, "__complete", "--kubeconfig", "/dev/null", "why", ""); code != 0 || out != ":1\n" {
		t.Errorf("without a cluster: %q, exit code %d", out, code)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	file := scenes["cordoned"]().file(t)
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown name, with what is similar":          {[]string{"why", "midd"}, "there is no PodGroup, and no owner of pods, midd in namespace ml; did you mean job/mid, podgroup/mid?"},
		"an unknown kind of a known name":                {[]string{"why", "pcs/mid"}, "there is no PodGroup, and no owner of pods, podcliqueset/mid in namespace ml; did you mean"},
		"a name of another namespace":                    {[]string{"why", "mid", "-n", "web"}, "there is no PodGroup, and no owner of pods, mid in namespace web; did you mean -n ml?"},
		"a pod without a gang":                           {[]string{"why", "pod/nb-0", "-n", "nb"}, "pod nb-0 belongs to no gang: kubectl describe pod nb-0 -n nb says why it waits"},
		"no name":                                        {[]string{"why"}, "name one gang: kubectl muster why NAME, or --all"},
		"a name and --all":                               {[]string{"why", "mid", "--all"}, "name one gang"},
		"an unknown format":                              {[]string{"top", "-o", "xml"}, `unknown output format "xml": json or yaml`},
		"an unknown flag":                                {[]string{"top", "--again"}, "unknown flag: --again"},
		"a snapshot that is watched":                     {[]string{"top", "--watch"}, "--watch needs a cluster: a snapshot does not change"},
		"nothing to try":                                 {[]string{"what-if"}, "name files with -f, or nodes with --drain"},
		"an unknown node":                                {[]string{"what-if", "--drain", "node-006"}, "there is no node node-006; did you mean node-0006, node-0000, node-0001?"},
		"a file that does not exist":                     {[]string{"what-if", "-f", "no.yaml"}, "no.yaml: no such file"},
		"a manifest on the standard input that is empty": {[]string{"what-if", "-f", "-"}, "the files have no objects that make pods"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := run(t, 80, append([]string{"--snapshot", file, "-n", "ml"}, tc.args...)...)
			if code != exitError || out != "" || !strings.Contains(errs, tc.want) {
				t.Errorf("exit code %d, output %q, errors %q, want 1, nothing, and %q", code, out, errs, tc.want)
			}
		})
	}
	sparse := filepath.Join(t.TempDir(), "sparse")
	if err := os.WriteFile(sparse, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(sparse, 2<<30); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := run(t, 80, "top", "--snapshot", sparse); code != exitError || !strings.Contains(errs, "it has 2048 MiB: no snapshot is that large") {
		t.Errorf("exit code %d, errors %q for a file of 2 GiB", code, errs)
	}
	if code, _, errs := run(t, 80, "top", "--snapshot", "/dev/null"); code != exitError || !strings.Contains(errs, "reading snapshot /dev/null: it is no snapshot of kubectl muster") {
		t.Errorf("exit code %d, errors %q for a file that is no snapshot", code, errs)
	}
}

// A gang of 10,000 pods is one row, and 40 columns are enough.
func TestTreeOfALargeGang(t *testing.T) {
	t.Parallel()
	s := (&scene{}).nodes(2, nil).gang(wrappers.MakePodGroup("huge", "ml").UID("huge").MinMember(10_000), members("huge", 10_000, 1)...)
	code, out, errs := run(t, 40, "tree", "huge", "-n", "ml", "--snapshot", s.file(t))
	lines := strings.Split(out, "\n")
	if code != 0 || errs != "" || len(lines) > 16 || !strings.Contains(out, "10000 pods") {
		t.Errorf("exit code %d, %q, %d lines:\n%s", code, errs, len(lines), out)
	}
}

// Programs read the fields by these names.
func TestJSON(t *testing.T) {
	t.Parallel()
	file := scenes["cordoned"]().file(t)
	for command, want := range map[string][]string{
		"why mid":                   {"Explanation", "verdict", "reason", "message", "advice", "holders", "priority"},
		"why --all":                 {"Waiting", "gangs", "gpus", "reasons"},
		"tree mid":                  {"Tree", "phase", "need", "bound", "exist", "ready"},
		"top":                       {"Top", "gpus", "used", "free", "closed", "fits", "nodes", "waiting"},
		"doctor":                    {"Doctor", "checks"},
		"what-if --drain node-0000": {"WhatIf", "fits", "gangs"},
	} {
		args := append(strings.Fields(command), "-n", "ml", "--snapshot", file)
		_, out, _ := run(t, 80, append(args, "-o", "json")...)
		var fields map[string]any
		if err := json.Unmarshal([]byte(out), &fields); err != nil {
			t.Errorf("%s: %v: %s", command, err, out)
			continue
		}
		if fields["apiVersion"] != snapshot.APIVersion || fields["kind"] != want[0] {
			t.Errorf("%s: apiVersion %v, kind %v, want %s", command, fields["apiVersion"], fields["kind"], want[0])
		}
		for _, name := range want[1:] {
			if _, ok := fields[name]; !ok {
				t.Errorf("%s: no field %s in %s", command, name, out)
			}
		}
		if _, yaml, _ := run(t, 80, append(args, "-o", "yaml")...); !strings.Contains(yaml, "apiVersion: "+snapshot.APIVersion) {
			t.Errorf("%s as YAML: %s", command, yaml)
		}
	}
}

const configHead = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

// The programs' own words about their configuration.
func TestPrograms(t *testing.T) {
	t.Parallel()
	scheduler := func(args ...string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: musterNamespace, Name: "muster-scheduler"}}
		d.Spec.Template.Spec = corev1.PodSpec{
			Containers: []corev1.Container{{Args: args, VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/muster"}}}},
			Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "muster-scheduler-config"}}}}},
		}
		return d
	}
	controller := func(args ...string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: musterNamespace, Name: "muster-controller"}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Args: args}}
		return d
	}
	profiles := func(names ...string) *corev1.ConfigMap {
		text := configHead + "profiles:\n"
		for _, name := range names {
			text += "- schedulerName: " + name + "\n"
		}
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: musterNamespace, Name: "muster-scheduler-config"}, Data: map[string]string{"config.yaml": text}}
	}
	now := metav1.NewMicroTime(taken)
	kubeScheduler := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-scheduler"}, Spec: coordinationv1.LeaseSpec{RenewTime: &now}}
	const config = "--config=/etc/muster/config.yaml"
	file := func(text string) *corev1.ConfigMap {
		c := profiles()
		c.Data["config.yaml"] = configHead + text
		return c
	}
	for name, tc := range map[string]struct {
		objects []runtime.Object
		want    string
	}{
		"as in the manifests":  {[]runtime.Object{scheduler(config), controller(), profiles("muster-scheduler")}, "ok: muster-scheduler serves the schedulerName muster-scheduler"},
		"the built-in profile": {[]runtime.Object{scheduler(), controller()}, "ok: muster-scheduler serves the schedulerName muster-scheduler"},
		"instead of kube-scheduler": {[]runtime.Object{scheduler(config), controller(), profiles("muster-scheduler", "default-scheduler")},
			"problem: muster-scheduler serves the schedulerName default-scheduler, and --other-schedulers of muster-controller says that another scheduler does"},
		"instead of kube-scheduler, which the controller knows": {
			[]runtime.Object{scheduler(config), controller("--other-schedulers=volcano"), profiles("muster-scheduler", "default-scheduler")},
			"ok: muster-scheduler serves the schedulerName muster-scheduler, default-scheduler"},
		"instead of kube-scheduler, which runs": {
			[]runtime.Object{scheduler(config), controller("--other-schedulers", "volcano"), profiles("default-scheduler"), kubeScheduler},
			"problem: muster-scheduler serves the schedulerName default-scheduler, and kube-scheduler runs, too"},
		"with gates of another gang scheduling": {
			[]runtime.Object{scheduler(config, "--feature-gates=A=true,GangScheduling=true", "--feature-gates", "kube:GenericWorkload=true"), controller(), profiles("muster-scheduler")},
			"problem: muster-scheduler does not start: feature gates GenericWorkload bring"},
		"with a gate without the one that it needs": {[]runtime.Object{scheduler(config, "--feature-gates=CompositePodGroup=true"), controller(), profiles("muster-scheduler")},
			"problem: muster-scheduler does not start: CompositePodGroup is enabled, but depends on"},
		"with all gates": {[]runtime.Object{scheduler(config, "--feature-gates=AllAlpha=true,AllBeta=true"), controller(), profiles("muster-scheduler")},
			"problem: muster-scheduler does not start: feature gates GenericWorkload, TopologyAwareWorkloadScheduling,"},
		"with all gates but these": {
			[]runtime.Object{scheduler(config, "--feature-gates=AllAlpha=true,AllBeta=true,GenericWorkload=false,PodGroupPreemptionPolicy=false,TopologyAwareWorkloadScheduling=false,"+
				"CompositePodGroup=false,DRAWorkloadResourceClaims=false,WorkloadWithJob=false,InPlacePodVerticalScalingSchedulerPreemption=false"), controller(), profiles("muster-scheduler")},
			"ok: muster-scheduler serves"},
		"with other gates": {[]runtime.Object{scheduler(config, "--feature-gates=AllBeta=false,Of137=true"), controller(), profiles("muster-scheduler")}, "ok: muster-scheduler serves"},
		"with gates in the file": {[]runtime.Object{scheduler(config), controller(), file("featureGates: {AllAlpha: true}\n")},
			`problem: muster-scheduler of this version does not start: config.yaml of ConfigMap muster-scheduler-config: strict decoding error: unknown field "featureGates"`},
		"with plugins of another gang scheduling": {
			[]runtime.Object{scheduler(config), controller(), file("profiles:\n- schedulerName: s\n  plugins: {permit: {enabled: [{name: GangScheduling}]}}\n")},
			"problem: muster-scheduler of this version does not start: config.yaml of ConfigMap muster-scheduler-config: profile s enables plugin GangScheduling"},
		"a configuration that is no ConfigMap": {[]runtime.Object{scheduler("--config=/elsewhere/config.yaml"), controller()}, "unknown: the profiles of muster-scheduler could not be read: /elsewhere/config.yaml is in no ConfigMap"},
		"no Deployment":                        {nil, "unknown: there is no Deployment muster-system/muster-scheduler"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, client := &Doctor{}, fake.NewClientset(tc.objects...)
			controller, _ := d.readController(t.Context(), client)
			d.checkPrograms(t.Context(), client, controller, taken)
			if got := d.Checks[0].State + ": " + d.Checks[0].Message; len(d.Checks) != 1 || !strings.HasPrefix(got, tc.want) {
				t.Errorf("%q\nwant %q", got, tc.want)
			}
		})
	}
}

// rolesOf returns the objects of a file of roles and bindings.
func rolesOf(t *testing.T, file []byte) []runtime.Object {
	t.Helper()
	var objects []runtime.Object
	for _, document := range strings.Split(string(file), "\n---\n") {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// The roles in the cluster are compared with those that are shipped.
func TestRights(t *testing.T) {
	t.Parallel()
	without := func(verb, resource string, rules []rbacv1.PolicyRule) {
		for i := range rules {
			if slices.Contains(rules[i].Resources, resource) {
				rules[i].Verbs = slices.DeleteFunc(rules[i].Verbs, func(v string) bool { return v == verb })
			}
		}
	}
	for name, tc := range map[string]struct {
		edit func([]runtime.Object) []runtime.Object
		want string
	}{
		"as shipped": {func(o []runtime.Object) []runtime.Object { return o }, "ok: all that it needs"},
		"more than shipped": {func(o []runtime.Object) []runtime.Object {
			o[0].(*rbacv1.ClusterRole).Rules = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
			return o
		}, "ok: all that it needs"},
		"of an older version": {func(o []runtime.Object) []runtime.Object {
			without("watch", "nodes", o[0].(*rbacv1.ClusterRole).Rules)
			without("update", "leases", o[2].(*rbacv1.Role).Rules)
			return o
		}, "problem: ClusterRole muster-scheduler does not grant watch nodes, watch namespaces; Role muster-system/muster-scheduler does not grant update leases.coordination.k8s.io muster-scheduler: apply"},
		"without its binding": {func(o []runtime.Object) []runtime.Object { return append(o[:1], o[2:]...) }, "problem: ClusterRoleBinding muster-scheduler does not exist: apply"},
		"bound to others": {func(o []runtime.Object) []runtime.Object {
			b := o[1].(*rbacv1.ClusterRoleBinding)
			b.Subjects[0].Namespace, b.RoleRef.Name = "gpu", "view"
			return o
		}, "problem: ClusterRoleBinding muster-scheduler is of ClusterRole view; ClusterRoleBinding muster-scheduler is not for ServiceAccount muster-system/muster-scheduler: apply"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &Doctor{}
			d.checkRights(t.Context(), fake.NewClientset(tc.edit(rolesOf(t, manifests.SchedulerRBAC))...), "muster-scheduler", manifests.SchedulerRBAC, noRule)
			if got := d.Checks[0].State + ": " + d.Checks[0].Message; !strings.HasPrefix(got, tc.want) {
				t.Errorf("%q\nwant %q", got, tc.want)
			}
		})
	}
	moved := &Doctor{namespace: "gpu"}
	moved.checkRights(t.Context(), fake.NewClientset(rolesOf(t, bytes.ReplaceAll(manifests.SchedulerRBAC, []byte(musterNamespace), []byte("gpu")))...), "muster-scheduler", manifests.SchedulerRBAC, noRule)
	if moved.Checks[0].State != stateOK {
		t.Errorf("in another namespace: %+v", moved.Checks)
	}
	d := &Doctor{}
	client := fake.NewClientset(rolesOf(t, manifests.ControllerRBAC)...)
	d.checkRights(t.Context(), client, "muster-controller", manifests.ControllerRBAC, noRule)
	client.PrependReactor("get", "clusterrolebindings", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(rbacv1.Resource("clusterrolebindings"), "muster-controller", nil)
	})
	d.checkRights(t.Context(), client, "muster-controller", manifests.ControllerRBAC, noRule)
	if d.Checks[0].State != stateOK || d.Checks[1].State != stateUnknown {
		t.Errorf("%+v", d.Checks)
	}

	roles := rolesOf(t, manifests.ControllerRBAC)
	for _, o := range roles {
		about := func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Resources, "secrets") || r.APIGroups[0] == "admissionregistration.k8s.io"
		}
		switch role := o.(type) {
		case *rbacv1.ClusterRole:
			role.Rules = slices.DeleteFunc(role.Rules, about)
		case *rbacv1.Role:
			role.Rules = slices.DeleteFunc(role.Rules, about)
		}
	}
	for argument, want := range map[string]string{"--cert-management=external": stateOK, "--cert-management=self": stateProblem, "": stateProblem} {
		controller := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "muster-controller", Args: []string{argument}}}}}}}
		d := &Doctor{}
		d.checkRights(t.Context(), fake.NewClientset(roles...), "muster-controller", manifests.ControllerRBAC, unneededRule(controller))
		if d.Checks[0].State != want {
			t.Errorf("%s: %+v", argument, d.Checks)
		}
	}
}

// The CRDs are served in the versions that the programs use.
func TestVersions(t *testing.T) {
	t.Parallel()
	serves := func(version string, names ...string) *metav1.APIResourceList {
		list := &metav1.APIResourceList{GroupVersion: version}
		for _, name := range names {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
		}
		return list
	}
	groups := serves("scheduling.run.ai/v2alpha2", "podgroups", "podgroups/status")
	for name, tc := range map[string]struct {
		served []*metav1.APIResourceList
		want   string
	}{
		"the scheduler alone":  {[]*metav1.APIResourceList{groups}, "ok: the API server serves scheduling.run.ai/v2alpha2"},
		"an earlier version":   {[]*metav1.APIResourceList{serves("scheduling.run.ai/v2alpha1", "podgroups")}, "problem: the API server does not serve podgroups in scheduling.run.ai/v2alpha2"},
		"a part of a workload": {[]*metav1.APIResourceList{groups, serves("grove.io/v1alpha1", "podcliquesets", "podcliques")}, "problem: the API server does not serve clustertopologybindings, podcliquescalinggroups in grove.io/v1alpha1"},
	} {
		client := fake.NewClientset()
		client.Discovery().(*fakediscovery.FakeDiscovery).Resources = tc.served
		d := &Doctor{}
		d.checkVersions(client)
		if got := d.Checks[0].State + ": " + d.Checks[0].Message; !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %q\nwant %q", name, got, tc.want)
		}
	}
}

func TestDoctorKnowsVersions(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]string{
		"":               "ok: of an unknown version",
		"v1.37.0":        "ok: v1.37.0",
		"v1.38.0-beta.0": "unknown: v1.38.0-beta.0 is newer than 1.37, which Muster is built from",
		"v1.34.1":        "problem: v1.34.1 is older than 1.35",
	} {
		d := &Doctor{}
		d.checkKinds(&snapshot.Snapshot{Server: server})
		if got := d.Checks[0].State + ": " + d.Checks[0].Message; !strings.HasPrefix(got, want) {
			t.Errorf("server %q: %q, want %q", server, got, want)
		}
	}
}

// The clock of the API server is in its responses.
func TestServerClock(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]string{
		time.Second: "ok: this machine's clock agrees", 3 * time.Minute: "problem: this machine's clock is 3m ahead of", -time.Hour: "problem: this machine's clock is 60m behind",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", taken.UTC().Format(http.TimeFormat))
		}))
		clock := &serverClock{next: http.DefaultTransport, now: func() time.Time { return taken.Add(ahead) }}
		d := &Doctor{}
		d.checkClock(clock)
		response, err := (&http.Client{Transport: clock}).Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		server.Close()
		d.checkClock(clock)
		if d.Checks[0].State != stateUnknown || !strings.HasPrefix(d.Checks[1].State+": "+d.Checks[1].Message, want) {
			t.Errorf("%s ahead: %+v, want %s", ahead, d.Checks, want)
		}
	}
}

// What lint says of a PodCliqueSet is what the webhooks would: replicas that a clique does not give are 1, those of the
// set 0, which a job must not have. All whole PodCliqueSets in the guides are right.
func TestLintOfPodCliqueSets(t *testing.T) {
	t.Parallel()
	set := func(replicas, workloadType, cliqueReplicas string) string {
		return "apiVersion: grove.io/v1alpha1\nkind: PodCliqueSet\nmetadata: {name: a}\nspec:\n" + replicas + workloadType +
			"  template:\n    cliques:\n    - name: main\n      spec:\n        roleName: main\n" + cliqueReplicas +
			"        podSpec: {restartPolicy: Never, containers: [{name: main, image: registry.example/main:1}]}\n"
	}
	files := map[string]struct {
		document string
		code     int
		says     string
	}{
		"no replicas of the clique": {set("  replicas: 1\n", "", ""), 0, ""},
		"0 of the clique":           {set("  replicas: 1\n", "", "        replicas: 0\n"), 2, "must be greater than 0"},
		"no replicas of a job":      {set("", "  workloadType: Training\n", ""), 2, "it is immutable: set it to 1 or more"},
		"no replicas of a service":  {set("", "", ""), 0, "no pods are created until it is raised"},
	}
	guides, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, guide := range guides {
		data, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range strings.Split(string(data), "```yaml\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			if strings.Contains(block, "kind: PodCliqueSet\n") && strings.Contains(block, "podSpec:") && !strings.Contains(block, "...") {
				files[fmt.Sprintf("%s block %d", filepath.Base(guide), i+1)] = struct {
					document string
					code     int
					says     string
				}{block, 0, ""}
			}
		}
	}
	if len(files) < 6 {
		t.Errorf("only %d documents were found", len(files))
	}
	for name, tc := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "set.yaml")
			if err := os.WriteFile(file, []byte(tc.document), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errs := run(t, 120, "--snapshot", scenes["runs"]().file(t), "lint", "-f", file)
			if code != tc.code || !strings.Contains(out+errs, tc.says) {
				t.Errorf("exit code %d, want %d, and %q:\n%s%s\n%s", code, tc.code, tc.says, out, errs, tc.document)
			}
		})
	}
}
