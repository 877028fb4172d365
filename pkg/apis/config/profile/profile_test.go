// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	kubeconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	kubevalidation "k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	schedulerprofile "k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/muster-project/muster/pkg/apis/config"
	configv1 "github.com/muster-project/muster/pkg/apis/config/v1"
	"github.com/muster-project/muster/pkg/apis/config/validation"
)

func mustDefault(t *testing.T) *kubeconfig.KubeSchedulerConfiguration {
	t.Helper()
	cfg, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestDefaultIsValid(t *testing.T) {
	t.Parallel()
	cfg := mustDefault(t)
	if err := kubevalidation.ValidateKubeSchedulerConfiguration(cfg); err != nil {
		t.Errorf("the stock scheduler's validation: %v", err)
	}
	if err := validation.ValidateGangAdmissionArgs(nil, gangAdmissionArgs(t, cfg)); err != nil {
		t.Error(err)
	}
	type facts struct {
		APIVersion, SchedulerName, Lock string
		LeaderElect                     bool
		QPS                             float32
		Burst                           int32
		Profiling, ContentionProfiling  bool
	}
	want := facts{
		APIVersion:    "kubescheduler.config.k8s.io/v1",
		SchedulerName: SchedulerName,
		Lock:          "leases muster-system/muster-scheduler",
		LeaderElect:   true,
		QPS:           5000,
		Burst:         10000,
		Profiling:     true,
	}
	got := facts{
		APIVersion:    cfg.APIVersion,
		SchedulerName: cfg.Profiles[0].SchedulerName,
		Lock: cfg.LeaderElection.ResourceLock + " " +
			cfg.LeaderElection.ResourceNamespace + "/" + cfg.LeaderElection.ResourceName,
		LeaderElect: cfg.LeaderElection.LeaderElect,
		QPS:         cfg.ClientConnection.QPS,
		Burst:       cfg.ClientConnection.Burst,
		Profiling:   cfg.EnableProfiling, ContentionProfiling: cfg.EnableContentionProfiling,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

// The file lists the defaults explicitly for its readers; they must equal the defaults in the code.
func TestTheFileShowsTheDefaults(t *testing.T) {
	t.Parallel()
	var defaulted configv1.GangAdmissionArgs
	configv1.SetDefaults_GangAdmissionArgs(&defaulted)
	var want config.GangAdmissionArgs
	scheme := runtime.NewScheme()
	if err := configv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := scheme.Convert(&defaulted, &want, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, gangAdmissionArgs(t, mustDefault(t))); diff != "" {
		t.Errorf("arguments (-defaults +file):\n%s", diff)
	}
}

func gangAdmissionArgs(t *testing.T, cfg *kubeconfig.KubeSchedulerConfiguration) *config.GangAdmissionArgs {
	t.Helper()
	for _, pc := range cfg.Profiles[0].PluginConfig {
		if pc.Name == "GangAdmission" {
			return pc.Args.(*config.GangAdmissionArgs)
		}
	}
	t.Fatal("no arguments for GangAdmission")
	return nil
}

func TestAChangedFieldChangesNothingElse(t *testing.T) {
	t.Parallel()
	otherCluster := mustDefault(t)
	otherCluster.ClientConnection.Kubeconfig = "/etc/muster/kubeconfig"
	slow := mustDefault(t)
	slow.ClientConnection.QPS = 20
	unprofiled := mustDefault(t)
	unprofiled.EnableProfiling = false

	tests := map[string]struct {
		change func(file []byte) ([]byte, error)
		want   *kubeconfig.KubeSchedulerConfiguration
	}{
		"a kubeconfig": {
			change: func(file []byte) ([]byte, error) {
				return With(file, "/etc/muster/kubeconfig", "clientConnection", "kubeconfig")
			},
			want: otherCluster,
		},
		"a field that the file has": {
			change: func(file []byte) ([]byte, error) { return With(file, 20.0, "clientConnection", "qps") },
			want:   slow,
		},
		"a field that the file does not have": {
			change: func(file []byte) ([]byte, error) { return With(file, false, "enableProfiling") },
			want:   unprofiled,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := DefaultFile()
			if err != nil {
				t.Fatal(err)
			}
			if file, err = tt.change(file); err != nil {
				t.Fatal(err)
			}
			got, err := Decode(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPluginOrder lets the stock scheduler build its framework from the built-in profile, with substitutes for Muster's
// plugins that implement the same extension points, and lists the plugins at each extension point in their order.
// The test shows what changes with another Kubernetes version.
func TestPluginOrder(t *testing.T) {
	t.Parallel()
	filters := []string{
		"GangAdmission", "NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
		"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity",
		"DynamicResources", "NodeDeclaredFeatures",
	}
	preScores := []string{
		"TaintToleration", "NodeAffinity", "VolumeBinding", "PodTopologySpread", "InterPodAffinity",
		"NodeResourcesBalancedAllocation", "GPUPacking",
	}
	scores := []string{
		"TaintToleration", "NodeAffinity", "VolumeBinding", "PodTopologySpread", "InterPodAffinity", "DynamicResources",
		"NodeResourcesBalancedAllocation", "ImageLocality", "GPUPacking",
	}
	want := map[string][]string{
		"queueSort":  {"GangAdmission"},
		"preEnqueue": {"SchedulingGates", "DynamicResources", "GangGate"},
		"preFilter":  {"GangAdmission", "NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures"},
		"filter":     filters,
		"postFilter": {"GangAdmission", "DynamicResources"},
		"preScore":   preScores,
		"score":      scores,
		"reserve":    {"GangAdmission", "VolumeBinding", "DynamicResources"},
		"permit":     {"GangAdmission"},
		"preBind":    {"VolumeBinding", "DynamicResources"},
		"bind":       {"GangAdmission", "DefaultBinder"},
		"postBind":   {"GangAdmission"},
		// Used only for PodGroups of Kubernetes, which are alpha and disabled.
		"placementScore": {"NodeResourcesFit"},
	}

	profiles := newScheduler(t, mustDefault(t)).Profiles
	p := profiles[SchedulerName]
	if p == nil || len(profiles) != 1 {
		t.Fatalf("profiles %v, want %s alone", profiles, SchedulerName)
	}
	if diff := cmp.Diff(want, namesOf(p.ListPlugins())); diff != "" {
		t.Errorf("plugins (-want +got):\n%s", diff)
	}
}

// For a pod without a gang, the stock plugins run with the stock arguments in the stock order, GPUPacking with the weight
// of NodeResourcesFit.
func TestAllElseIsTheStockScheduler(t *testing.T) {
	t.Parallel()
	stock, err := Decode([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"))
	if err != nil {
		t.Fatal(err)
	}
	// With weights, without GangGate and GangAdmission, the queue's order, which for such pods equals PrioritySort,
	// DefaultPreemption, in whose place GangAdmission preempts, and what scores CPU, memory and GPUs.
	plugins := func(cfg *kubeconfig.KubeSchedulerConfiguration) map[string][]kubeconfig.Plugin {
		all := map[string][]kubeconfig.Plugin{}
		for _, p := range newScheduler(t, cfg).Profiles {
			for point, set := range setsOf(p.ListPlugins()) {
				for _, pl := range set.Enabled {
					isScored := strings.HasSuffix(strings.ToLower(point), "score") && slices.Contains([]string{"NodeResourcesFit", "GPUPacking"}, pl.Name)
					if !isScored && !slices.Contains([]string{"GangGate", "GangAdmission", "PrioritySort", "DefaultPreemption"}, pl.Name) {
						all[point] = append(all[point], pl)
					}
				}
			}
		}
		return all
	}
	arguments := func(cfg *kubeconfig.KubeSchedulerConfiguration) map[string]runtime.Object {
		all := map[string]runtime.Object{}
		for _, c := range cfg.Profiles[0].PluginConfig {
			if c.Name != "GangAdmission" && c.Name != "DefaultPreemption" {
				all[c.Name] = c.Args
			}
		}
		return all
	}
	ours := mustDefault(t)
	if diff := cmp.Diff(plugins(stock), plugins(ours)); diff != "" {
		t.Errorf("plugins (-stock +ours):\n%s", diff)
	}
	weight := func(cfg *kubeconfig.KubeSchedulerConfiguration, plugin string) (weight int32) {
		for _, p := range newScheduler(t, cfg).Profiles {
			for _, pl := range p.ListPlugins().Score.Enabled {
				if pl.Name == plugin {
					weight = pl.Weight
				}
			}
		}
		return weight
	}
	if was, is := weight(stock, "NodeResourcesFit"), weight(ours, "GPUPacking"); was != is || is == 0 {
		t.Errorf("GPUPacking has the weight %d, NodeResourcesFit %d", is, was)
	}
	if diff := cmp.Diff(arguments(stock), arguments(ours)); diff != "" {
		t.Errorf("arguments (-stock +ours):\n%s", diff)
	}
	for _, cfg := range []*kubeconfig.KubeSchedulerConfiguration{stock, ours} {
		// These differ on purpose: binding gangs of 1,000 pods needs more than 50 requests a second, the lock is
		// separate, and the block profile costs too much.
		cfg.EnableContentionProfiling = false
		cfg.ClientConnection, cfg.LeaderElection.ResourceName, cfg.LeaderElection.ResourceNamespace, cfg.Profiles = stock.ClientConnection, "", "", nil
	}
	if diff := cmp.Diff(stock, ours); diff != "" {
		t.Errorf("all else (-stock +ours):\n%s", diff)
	}
}

// TestASecondProfileIsASecondStanza loads the example of docs/configuration.md: the built-in profile, and another one
// that scores as kube-scheduler does.
func TestASecondProfileIsASecondStanza(t *testing.T) {
	t.Parallel()
	cfg, err := Decode([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" + exampleOf(t, "## A second profile")))
	if err != nil {
		t.Fatal(err)
	}
	if err := kubevalidation.ValidateKubeSchedulerConfiguration(cfg); err != nil {
		t.Fatal(err)
	}

	want := namesOf(newScheduler(t, mustDefault(t)).Profiles[SchedulerName].ListPlugins())
	stock, err := Decode([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"))
	if err != nil {
		t.Fatal(err)
	}
	stockScores := namesOf(newScheduler(t, stock).Profiles[corev1.DefaultSchedulerName].ListPlugins())
	profiles := newScheduler(t, cfg).Profiles
	if len(profiles) != 2 {
		t.Errorf("%d profiles", len(profiles))
	}
	for _, schedulerName := range []string{SchedulerName, "kai-scheduler"} {
		p := profiles[schedulerName]
		if p == nil {
			t.Errorf("no profile %s", schedulerName)
			continue
		}
		if schedulerName != SchedulerName {
			want["preScore"], want["score"] = stockScores["preScore"], stockScores["score"]
		}
		if diff := cmp.Diff(want, namesOf(p.ListPlugins())); diff != "" {
			t.Errorf("plugins of %s (-want +got):\n%s", schedulerName, diff)
		}
	}
}

// exampleOf returns the first YAML below a heading of docs/configuration.md.
func exampleOf(t *testing.T, heading string) string {
	t.Helper()
	docs, err := os.ReadFile("../../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(docs), "\n"+heading+"\n")
	_, example, _ := strings.Cut(section, "```yaml\n")
	example, _, found := strings.Cut(example, "```")
	if !found {
		t.Fatalf("docs/configuration.md has no example below %q", heading)
	}
	return example
}

// TestArgumentsAsDocumented gives an argument as docs/configuration.md does, but with another value than the default.
func TestArgumentsAsDocumented(t *testing.T) {
	t.Parallel()
	example := strings.NewReplacer("\n", "\n  ", "30s", "45s").Replace("\n" + exampleOf(t, "### Arguments of GangAdmission"))
	cfg, err := Decode([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: muster-scheduler" + example))
	if err != nil {
		t.Fatal(err)
	}
	if got := gangAdmissionArgs(t, cfg).RepairTimeout.Duration; got != 45*time.Second {
		t.Errorf("repairTimeout is %v", got)
	}
}

// TestAPluginOrAnArgumentOfALaterVersion: muster-scheduler does not start with it.
func TestAPluginOrAnArgumentOfALaterVersion(t *testing.T) {
	t.Parallel()
	file, err := DefaultFile()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode([]byte(strings.ReplaceAll(string(file), "rankOrder:", "laterArgument:"))); err == nil || !strings.Contains(err.Error(), "laterArgument") {
		t.Errorf("an argument: %v", err)
	}
	cfg, err := Decode([]byte(strings.ReplaceAll(string(file), "GPUPacking", "LaterPlugin")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tryScheduler(t, cfg); err == nil || !strings.Contains(err.Error(), "LaterPlugin") {
		t.Errorf("a plugin: %v", err)
	}
}

func newScheduler(t *testing.T, cfg *kubeconfig.KubeSchedulerConfiguration) *scheduler.Scheduler {
	t.Helper()
	sched, err := tryScheduler(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return sched
}

func tryScheduler(t *testing.T, cfg *kubeconfig.KubeSchedulerConfiguration) (*scheduler.Scheduler, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	client := fake.NewClientset()
	return scheduler.New(ctx, client, scheduler.NewInformerFactory(client, 0, nil), nil,
		schedulerprofile.NewRecorderFactory(events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})),
		scheduler.WithComponentConfigVersion(cfg.APIVersion),
		scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{
			"GangGate":      func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return gangGate{}, nil },
			"GangAdmission": func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return gangAdmission{}, nil },
			"GPUPacking":    func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return gpuPacking{}, nil },
		}))
}

// namesOf returns the names of the plugins at each extension point that has any, in order.
func namesOf(plugins *kubeconfig.Plugins) map[string][]string {
	names := map[string][]string{}
	for point, set := range setsOf(plugins) {
		for _, pl := range set.Enabled {
			names[point] = append(names[point], pl.Name)
		}
	}
	return names
}

func setsOf(plugins *kubeconfig.Plugins) map[string]kubeconfig.PluginSet {
	return map[string]kubeconfig.PluginSet{
		"queueSort": plugins.QueueSort, "preEnqueue": plugins.PreEnqueue, "preFilter": plugins.PreFilter,
		"filter": plugins.Filter, "postFilter": plugins.PostFilter, "preScore": plugins.PreScore, "score": plugins.Score,
		"reserve": plugins.Reserve, "permit": plugins.Permit, "preBind": plugins.PreBind, "bind": plugins.Bind,
		"postBind": plugins.PostBind, "placementGenerate": plugins.PlacementGenerate, "placementScore": plugins.PlacementScore,
	}
}

type gangGate struct{}

var _ fwk.PreEnqueuePlugin = gangGate{}

func (gangGate) Name() string                                        { return "GangGate" }
func (gangGate) PreEnqueue(context.Context, *corev1.Pod) *fwk.Status { return nil }
func (gangGate) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

type gpuPacking struct{}

var (
	_ fwk.PreScorePlugin = gpuPacking{}
	_ fwk.ScorePlugin    = gpuPacking{}
	_ fwk.SignPlugin     = gpuPacking{}
)

func (gpuPacking) Name() string { return "GPUPacking" }
func (gpuPacking) PreScore(context.Context, fwk.CycleState, *corev1.Pod, []fwk.NodeInfo) *fwk.Status {
	return nil
}
func (gpuPacking) Score(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) (int64, *fwk.Status) {
	return 0, nil
}
func (gpuPacking) ScoreExtensions() fwk.ScoreExtensions { return nil }
func (gpuPacking) SignPod(context.Context, *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return nil, nil
}

type gangAdmission struct{}

var (
	_ fwk.QueueSortPlugin  = gangAdmission{}
	_ fwk.PreFilterPlugin  = gangAdmission{}
	_ fwk.FilterPlugin     = gangAdmission{}
	_ fwk.PostFilterPlugin = gangAdmission{}
	_ fwk.ReservePlugin    = gangAdmission{}
	_ fwk.PermitPlugin     = gangAdmission{}
	_ fwk.BindPlugin       = gangAdmission{}
	_ fwk.PostBindPlugin   = gangAdmission{}
	_ fwk.SignPlugin       = gangAdmission{}
)

func (gangAdmission) Name() string                                         { return "GangAdmission" }
func (gangAdmission) Less(fwk.QueuedEntityInfo, fwk.QueuedEntityInfo) bool { return false }
func (gangAdmission) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}
func (gangAdmission) PreFilter(context.Context, fwk.CycleState, *corev1.Pod, []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	return nil, nil
}
func (gangAdmission) PreFilterExtensions() fwk.PreFilterExtensions { return nil }
func (gangAdmission) Filter(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) *fwk.Status {
	return nil
}
func (gangAdmission) PostFilter(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	return nil, nil
}
func (gangAdmission) Reserve(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	return nil
}
func (gangAdmission) Unreserve(context.Context, fwk.CycleState, *corev1.Pod, string) {}
func (gangAdmission) Permit(context.Context, fwk.CycleState, *corev1.Pod, string) (*fwk.Status, time.Duration) {
	return nil, 0
}
func (gangAdmission) Bind(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	return nil
}
func (gangAdmission) PostBind(context.Context, fwk.CycleState, *corev1.Pod, string) {}
func (gangAdmission) SignPod(context.Context, *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return nil, nil
}
