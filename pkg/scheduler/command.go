// SPDX-License-Identifier: Apache-2.0

// Package scheduler is the command muster-scheduler: the stock kube-scheduler with the plugins GangGate, GangAdmission
// and GPUPacking. Its folders are the parts of these plugins.
package scheduler

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of client-go
	_ "k8s.io/component-base/metrics/prometheus/version"  // the metric kubernetes_build_info
	"k8s.io/component-base/term"
	kubeversion "k8s.io/component-base/version"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedoptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/muster-project/muster/pkg/apis/config/profile"
	"github.com/muster-project/muster/pkg/scheduler/gangadmission"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/pkg/scheduler/report"
	"github.com/muster-project/muster/pkg/version"
)

// long is what the help begins with; the flags of the stock scheduler follow.
const long = `muster-scheduler is kube-scheduler with gang admission: the pods of a gang are bound together when the minimum of
the gang can be placed, and not before. Pods without a gang are scheduled as by kube-scheduler. Pods that request GPUs
go where most GPUs are in use, so that nodes stay whole.

  Pods choose it by spec.schedulerName: muster-scheduler.
  Pods of a gang name a PodGroup of their namespace by the annotation pod-group-name, and a leaf of it, if it
  has sub-groups, by the label kai.scheduler/subgroup-name.
  A gang that waits says why: kubectl get pg, kubectl describe pg NAME.

Without --config it runs one profile, "muster-scheduler". To configure it, write that configuration to a file, edit it,
and start with the file:

  muster-scheduler --write-config-to config.yaml
  muster-scheduler --config config.yaml

The file is a KubeSchedulerConfiguration (https://kubernetes.io/docs/reference/scheduling/config/). A profile that
schedules gangs enables the plugins GangGate and GangAdmission; the plugin GPUPacking scores nodes. The arguments of
GangAdmission, such as repairTimeout, waitingForGangAfter and bindParallelism, are documented in

  https://github.com/muster-project/muster/blob/main/docs/configuration.md#arguments-of-gangadmission

Logs are text, or JSON with --logging-format=json. Metrics of gangs begin with muster_. All flags are those of
kube-scheduler; its deprecated ones are ignored beside --config.`

// NewCommand returns the command muster-scheduler. options add the plugins of a site to those of kube-scheduler and
// Muster; a profile of the file --config enables them.
//
// It is app.NewSchedulerCommand with two differences: the built-in profile stands in for a missing --config, and the
// plugins are attached to the scheduler between its set-up and its run, which that command gives no chance to do. A
// process can run the command once.
func NewCommand(options ...app.Option) *cobra.Command {
	opts := schedoptions.NewOptions()
	opts.LeaderElection.ResourceName = "muster-scheduler"
	opts.LeaderElection.ResourceNamespace = "muster-system"
	showVersion, workloadGangs := false, false

	cmd := &cobra.Command{
		Use:   "muster-scheduler",
		Short: "Schedules gangs of pods whole or not at all, and all other pods as kube-scheduler does",
		Long:  long,
		Args:  cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return opts.ComponentGlobalsRegistry.Set()
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showVersion {
				fmt.Fprintf(cmd.OutOrStdout(), "muster-scheduler %s\nkube-scheduler %s\n", version.String(), kubeversion.Get())
				return nil
			}
			return runCommand(cmd, opts, workloadGangs, options)
		},
	}
	flags := opts.Flags
	flags.FlagSet("global").BoolVar(&showVersion, "version", false, "Print the version of muster-scheduler and of the kube-scheduler it is built on, and exit.")
	flags.FlagSet("gangs").BoolVar(&workloadGangs, "workload-gangs", false,
		"Pods of LeaderWorkerSets, JobSets and RayClusters are members of the gangs of their workloads, whose PodGroups muster-controller makes. Without it they start one by one, unless they name a PodGroup.")
	globalflag.AddGlobalFlags(flags.FlagSet("global"), cmd.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range flags.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, *flags, columns)
	return cmd
}

// runCommand follows kube-scheduler's own runCommand.
func runCommand(cmd *cobra.Command, opts *schedoptions.Options, workloadGangs bool, plugins []app.Option) error {
	tuneGC()
	gates := opts.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(opts.Logs, gates); err != nil {
		return err
	}
	if err := kubescheduler.RefuseGates(gates.Enabled); err != nil {
		return err
	}
	cliflag.PrintFlags(cmd.Flags())
	if opts.WriteConfigTo != "" {
		writeConfigOffline(opts)
	}
	remove, err := builtinProfile(opts)
	if err != nil {
		return err
	}
	defer remove()
	if opts.WriteConfigTo == "" {
		turnOffUnserved(opts, gates.(featuregate.MutableFeatureGate))
	}

	if opts.InformerName, err = cache.NewInformerName("muster-scheduler"); err != nil { // for metrics of informers
		return fmt.Errorf("naming the informers: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-server.SetupSignalHandler()
		cancel()
	}()

	gangs := gangadmission.New()
	answers := make(chan struct{})
	gangs.StartAfter(answers)
	if !workloadGangs {
		gangs.IgnoreWorkloads()
	}
	newGate := func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		remove() // read when plugins are made; with --write-config-to Setup does not return
		return gangs.NewGate(ctx, args, handle)
	}
	config, sched, err := app.Setup(ctx, opts, append(slices.Clone(plugins),
		app.WithPlugin(gangadmission.GateName, newGate), app.WithPlugin(gangadmission.Name, gangs.NewAdmission),
		app.WithPlugin(kubescheduler.GPUPackingName, kubescheduler.NewGPUPacking))...)
	if err != nil {
		return err
	}
	if err := kubescheduler.RefuseGangPlugins(config.ComponentConfig.Profiles); err != nil {
		return err
	}
	if err := gangs.Attach(sched); err != nil {
		return err
	}
	bindings, err := kubescheduler.NewBindingClient(config.KubeConfig)
	if err != nil {
		return err
	}
	gangs.BindThrough(bindings)
	gates.(featuregate.MutableFeatureGate).AddMetrics()
	opts.ComponentGlobalsRegistry.AddMetrics()
	klog.FromContext(ctx).Info("Starting muster-scheduler", "version", version.String())
	go func() {
		waitForAPIServer(ctx, config.Client.Discovery().RESTClient(), apiServerPoll, apiServerUnready)
		ask := func() (featuregate.Feature, error) {
			return kubescheduler.UnservedGate(gates.Enabled, config.Client.Discovery())
		}
		if gate := waitForGate(ctx, ask, apiServerPoll, apiServerUnready); gate != "" {
			klog.FromContext(ctx).Error(nil, "The API server did not answer at the start, and does not serve what a feature gate needs: starting again without it", "gate", gate)
			klog.FlushAndExit(klog.ExitFlushTimeout, 1)
		}
		close(answers)
		logServerSkew(klog.FromContext(ctx), config.Client.Discovery())
	}()
	podGroups, err := report.NewPodGroupClient(config.KubeConfig)
	if err != nil {
		return err
	}
	config.InformerFactory = lateInformers{SharedInformerFactory: config.InformerFactory, answers: answers, check: podGroups.CheckSchema}
	return app.Run(ctx, config, sched)
}

// turnOffUnserved turns off the feature gate that lets the scheduler watch what the API server does not serve. It has
// to know before the scheduler is made, and asks once: of one that does not answer yet, the caller must ask again.
func turnOffUnserved(opts *schedoptions.Options, gates featuregate.MutableFeatureGate) {
	logger := klog.Background()
	file, err := schedoptions.LoadConfigFromFile(logger, opts.ConfigFile)
	if err != nil {
		return // app.Setup reads it again, and returns the error
	}
	config, err := clientcmd.BuildConfigFromFlags(opts.Master, file.ClientConnection.Kubeconfig)
	if err != nil {
		return // the same
	}
	config.Timeout = apiServerTimeout
	server, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return // the same
	}
	gate, err := kubescheduler.UnservedGate(gates.Enabled, server)
	if err != nil || gate == "" {
		return
	}
	if err := gates.SetFromMap(map[string]bool{string(gate): false}); err != nil {
		logger.Error(err, "Failed to turn off a feature gate whose resources the API server does not serve", "gate", gate)
		return
	}
	logger.Info("The feature gate is off, since the API server does not serve what it needs; start again when it does", "gate", gate)
}

// writeConfigOffline makes the stock scheduler write its configuration without a cluster and beside a running
// scheduler: Setup makes clients before it writes, but sends no request, and neither the address nor the port is part
// of what it writes.
func writeConfigOffline(opts *schedoptions.Options) {
	if opts.Master == "" {
		opts.Master = "https://127.0.0.1:0"
	}
	opts.SecureServing.BindPort = 0
}

// builtinProfile writes the built-in configuration to a file and makes it --config, if none was given: the stock
// scheduler replaces any other default by its own. The deprecated flags that it ignores beside --config go into the
// file. The caller removes the file when it has been read; removing twice does no harm.
func builtinProfile(opts *schedoptions.Options) (remove func(), err error) {
	if opts.ConfigFile != "" {
		return func() {}, nil
	}
	data, err := profile.DefaultFile()
	if err != nil {
		return nil, err
	}
	changed := opts.Flags.FlagSet("deprecated").Changed
	for _, f := range []struct {
		flag  string
		value any
		path  []string
	}{
		{"kubeconfig", opts.Deprecated.Kubeconfig, []string{"clientConnection", "kubeconfig"}},
		{"kube-api-content-type", opts.Deprecated.ContentType, []string{"clientConnection", "contentType"}},
		{"kube-api-qps", float64(opts.Deprecated.QPS), []string{"clientConnection", "qps"}},
		{"kube-api-burst", int64(opts.Deprecated.Burst), []string{"clientConnection", "burst"}},
		{"profiling", opts.Deprecated.EnableProfiling, []string{"enableProfiling"}},
		{"contention-profiling", opts.Deprecated.EnableContentionProfiling, []string{"enableContentionProfiling"}},
	} {
		if !changed(f.flag) {
			continue
		}
		if data, err = profile.With(data, f.value, f.path...); err != nil {
			return nil, fmt.Errorf("taking over --%s: %w", f.flag, err)
		}
	}
	file, err := os.CreateTemp("", "muster-scheduler-*.yaml")
	if err != nil {
		return nil, fmt.Errorf("writing the built-in configuration (give --config where the file system is read-only): %w", err)
	}
	remove = func() { os.Remove(file.Name()) }
	_, err = file.Write(data)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		remove()
		return nil, fmt.Errorf("writing the built-in configuration: %w", err)
	}
	opts.ConfigFile = file.Name()
	return remove, nil
}
