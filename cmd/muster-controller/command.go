// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/pprof"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers"
	"github.com/muster-project/muster/pkg/controllers/metrics"
	"github.com/muster-project/muster/pkg/grouping"
	"github.com/muster-project/muster/pkg/version"
	"github.com/muster-project/muster/pkg/webhooks"
	"github.com/muster-project/muster/pkg/webhooks/certificates"
)

const name = "muster-controller"

func newCommand() *cobra.Command {
	o := defaultOptions()
	logging := logsapi.NewLoggingConfiguration()
	cmd := &cobra.Command{
		Use:   name,
		Short: "Runs Muster's workload API",
		Long: `muster-controller runs the workload API: it makes the pods of PodCliqueSets,
and the PodGroups by which muster-scheduler admits them, scales and repairs them.
It makes PodGroups for Jobs, StatefulSets and Deployments that ask for one, for
LeaderWorkerSets, JobSets and RayClusters, and from PodGroups of other schedulers.
It serves the admission webhooks of Muster too: what is invalid is refused with
every error named, and fields that do not do what they say are answered with a
warning.

It runs in the cluster, called through a Service, or as a plain process, called
by url. It makes and renews its certificate itself unless told otherwise.`,
		Version: version.String(),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logsapi.ValidateAndApply(logging, nil); err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return err
			}
			return runManager(ctrl.SetupSignalHandler(), o)
		},
	}
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	o.addFlags(cmd.Flags())
	logsapi.AddFlags(logging, cmd.Flags())
	return cmd
}

// runManager serves until ctx is done, then ends cleanly.
//
// These are all the calls it makes to the API server; the RBAC rules of
// manifests/controller grant no more. NS is --namespace, the rest are the
// defaults of the flags.
//
//	--cert-management=self (default):
//	  NS       secrets                muster-webhooks-tls  get list watch update
//	  NS       secrets                (any name)           create; cannot be restricted by name
//	  cluster  validatingwebhookconfigurations.admissionregistration.k8s.io,
//	           mutatingwebhookconfigurations.admissionregistration.k8s.io
//	                                  muster-webhooks      get list watch patch
//	--scheduler-lease (default):
//	  NS       leases.coordination.k8s.io  muster-scheduler   get
//	--leader-elect (default):
//	  NS       leases.coordination.k8s.io  muster-controller  get update
//	  NS       leases.coordination.k8s.io  (any name)         create; cannot be restricted by name
//	  NS       events                      (any name)         create patch; "became leader"
//	the controllers, in all namespaces:
//	  podcliquesets                        get list watch; status patch
//	  podcliquescalinggroups, podcliques   get list watch create update delete; status patch
//	  podgroups.scheduling.run.ai, services, horizontalpodautoscalers.autoscaling
//	                                       get list watch create update patch delete
//	  pods                                 get list watch create patch delete
//	  clustertopologybindings.grove.io, topologies.kai.scheduler
//	                                       get list watch; for sets with a topology constraint
//	  nodes                                get list watch; which of them do not answer
//	  namespaces                           get list watch; their class
//	  leases.coordination.k8s.io           grove-operator-leader-election  get list watch
//	  events.events.k8s.io                 create patch
//	  jobs.batch, statefulsets.apps, deployments.apps, leaderworkersets.leaderworkerset.x-k8s.io,
//	  jobsets.jobset.x-k8s.io, rayclusters.ray.io, podgroups.scheduling.x-k8s.io, podgroups.scheduling.volcano.sh,
//	  podgroups.scheduling.k8s.io, compositepodgroups.scheduling.k8s.io
//	                                       get list watch; of the --grouped-kinds
//	  podgroups/status.scheduling.k8s.io   patch
//	  roles, rolebindings.rbac.authorization.k8s.io
//	                                       get list watch create update; for sets with a start order
//	--metrics-bind-address (default), of who reads metrics and profiles:
//	  tokenreviews.authentication.k8s.io, subjectaccessreviews.authorization.k8s.io
//	                                       create
//	always: discovery (/api, /apis), which every authenticated user may read
//
// list and watch are restricted by name where one is given: the requests carry
// the field selector metadata.name=NAME, which the authorizer takes for the name.
func runManager(ctx context.Context, o *options) error {
	logger := klog.Background().WithName(name)
	ctrl.SetLogger(logger)
	logger.Info("Starting muster-controller", "version", version.String(), "namespace", o.namespace, "certManagement", o.certManagement)

	apiServer, err := restConfig(o.kubeconfig)
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	apiServer.UserAgent = name + "/" + version.String()
	apiServer.QPS, apiServer.Burst = o.kubeAPIQPS, o.kubeAPIBurst

	managerOptions := ctrl.Options{
		Scheme:                        newScheme(),
		Logger:                        logger,
		Metrics:                       o.metricsServer(),
		HealthProbeBindAddress:        o.healthAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              o.leaderElectLease,
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
	}
	leaseDuration, renewDeadline, retryPeriod := o.leaderLeaseDuration, o.leaderLeaseDuration*2/3, o.leaderLeaseDuration/8
	managerOptions.LeaseDuration, managerOptions.RenewDeadline, managerOptions.RetryPeriod = &leaseDuration, &renewDeadline, &retryPeriod

	server := webhook.Options{Host: o.webhookHost, Port: o.webhookPort}
	var certs *certificates.Reconciler
	if o.certManagement == certificatesSelf {
		certs = &certificates.Reconciler{
			Secret:               types.NamespacedName{Namespace: o.namespace, Name: o.certSecret},
			WebhookConfiguration: o.webhookConfiguration,
			Hosts:                o.webhookHosts(),
			Validity:             o.certValidity,
			RenewBefore:          o.certRenewBefore,
			Clock:                clock.RealClock{},
		}
		managerOptions.Cache = certs.CacheOptions()
		server.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = certs.GetCertificate }}
	} else {
		server.CertDir = o.certDir
	}
	managerOptions.WebhookServer = webhook.NewServer(server)
	grouped, err := grouping.Select(o.groupedKinds)
	if err != nil {
		return err
	}
	ruled, err := o.readRules()
	if err != nil {
		return fmt.Errorf("reading --kind-rules: %w", err)
	}
	grouped = append(grouped, ruled...)
	settings := controllers.Options{
		SchedulerName: o.schedulerName, SchedulerLease: o.schedulerLeaseName(), StandstillLimit: renewDeadline,
		WaitImage: o.waitImage, StalledUpdateAfter: o.stalledUpdateAfter, Classes: o.classes, Grouped: grouped, OtherSchedulers: o.otherSchedulers}
	controllers.AddCacheOptions(&managerOptions.Cache, settings)

	if err := metrics.Register(); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(apiServer, managerOptions)
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	ready := map[string]func(*http.Request) error{"webhook-server": mgr.GetWebhookServer().StartedChecker()}
	if certs != nil {
		certs.Client = mgr.GetClient()
		if err := certs.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("setting up the webhook's certificate: %w", err)
		}
		ready["webhook-certificate"] = certs.Ready
	}
	if err := webhooks.Setup(mgr, o.schedulerName, o.classes); err != nil {
		return fmt.Errorf("setting up webhooks: %w", err)
	}
	if err := controllers.Setup(ctx, mgr, settings); err != nil {
		return err
	}
	for check, probe := range ready {
		if err := mgr.AddReadyzCheck(check, probe); err != nil {
			return fmt.Errorf("adding the readiness check %s: %w", check, err)
		}
	}
	if err := mgr.AddHealthzCheck("ping", func(*http.Request) error { return nil }); err != nil {
		return fmt.Errorf("adding the health check: %w", err)
	}

	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	logger.Info("Stopped muster-controller")
	return nil
}

// metricsServer serves metrics and profiles as kube-scheduler does: by HTTPS with a certificate that it signs itself,
// to those whom the API server knows and allows to get the path.
func (o *options) metricsServer() metricsserver.Options {
	server := metricsserver.Options{
		BindAddress: o.metricsAddress, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
	}
	if o.profiling {
		server.ExtraHandlers = map[string]http.Handler{
			"/debug/pprof/":        http.HandlerFunc(pprof.Index),
			"/debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
			"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
			"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
			"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
		}
	}
	return server
}

// restConfig finds the API server as kubectl does, and inside a pod by its
// service account.
func restConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(appsv1.AddToScheme(scheme))
	utilruntime.Must(coordinationv1.AddToScheme(scheme))
	utilruntime.Must(admissionregistrationv1.AddToScheme(scheme))
	utilruntime.Must(autoscalingv2.AddToScheme(scheme))
	utilruntime.Must(rbacv1.AddToScheme(scheme))
	utilruntime.Must(v2alpha2.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(topologyv1alpha1.AddToScheme(scheme))
	return scheme
}
