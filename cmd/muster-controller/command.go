package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/version"
	"github.com/muster-project/muster/pkg/webhooks"
)

const name = "muster-controller"

func newCommand() *cobra.Command {
	o := defaultOptions()
	logging := logsapi.NewLoggingConfiguration()
	cmd := &cobra.Command{
		Use:   name,
		Short: "Serves Muster's admission webhooks",
		Long: `muster-controller serves the admission webhooks of Muster: PodGroups that are
invalid are refused with every error named, and fields that do not do what they
say are answered with a warning.

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
			return run(ctrl.SetupSignalHandler(), o)
		},
	}
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	o.addFlags(cmd.Flags())
	logsapi.AddFlags(logging, cmd.Flags())
	return cmd
}

// run serves until ctx is done, then ends cleanly.
//
// These are all the calls it makes to the API server; the RBAC rules of
// manifests/controller grant no more. NS is --namespace, the rest are the
// defaults of the flags.
//
//	--cert-management=self (default):
//	  NS       secrets                muster-webhooks-tls  get list watch update
//	  NS       secrets                (any name)           create; cannot be restricted by name
//	  cluster  validatingwebhookconfigurations.admissionregistration.k8s.io
//	                                  muster-webhooks      get list watch patch
//	--leader-elect (default):
//	  NS       leases.coordination.k8s.io  muster-controller  get update
//	  NS       leases.coordination.k8s.io  (any name)         create; cannot be restricted by name
//	  NS       events                      (any name)         create patch; "became leader"
//	always: discovery (/api, /apis), which every authenticated user may read
//
// list and watch are restricted by name too: the requests carry the field
// selector metadata.name=NAME, which the authorizer takes for the name.
// PodGroups are not read: they come in the admission requests.
func run(ctx context.Context, o *options) error {
	logger := klog.Background().WithName(name)
	ctrl.SetLogger(logger)
	logger.Info("Starting", "version", version.String(), "namespace", o.namespace, "certManagement", o.certManagement)

	config, err := restConfig(o.kubeconfig)
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	config.UserAgent = name + "/" + version.String()

	managerOptions := ctrl.Options{
		Scheme:                        newScheme(),
		Logger:                        logger,
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.healthAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              o.leaderElectLease,
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
	}
	leaseDuration, renewDeadline, retryPeriod := o.leaderLeaseDuration, o.leaderLeaseDuration*2/3, o.leaderLeaseDuration/8
	managerOptions.LeaseDuration, managerOptions.RenewDeadline, managerOptions.RetryPeriod = &leaseDuration, &renewDeadline, &retryPeriod

	server := webhook.Options{Host: o.webhookHost, Port: o.webhookPort}
	var certificates *webhooks.Certificates
	if o.certManagement == certificatesSelf {
		certificates = &webhooks.Certificates{
			Secret:               types.NamespacedName{Namespace: o.namespace, Name: o.certSecret},
			WebhookConfiguration: o.webhookConfiguration,
			Hosts:                o.hosts(),
			Validity:             o.certValidity,
			RenewBefore:          o.certRenewBefore,
			Now:                  time.Now,
		}
		managerOptions.Cache = certificates.CacheOptions()
		server.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = certificates.GetCertificate }}
	} else {
		server.CertDir = o.certDir
	}
	managerOptions.WebhookServer = webhook.NewServer(server)

	mgr, err := ctrl.NewManager(config, managerOptions)
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	ready := map[string]func(*http.Request) error{"webhook-server": mgr.GetWebhookServer().StartedChecker()}
	if certificates != nil {
		certificates.Client = mgr.GetClient()
		if err := certificates.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("setting up the webhook's certificate: %w", err)
		}
		ready["webhook-certificate"] = certificates.Ready
	}
	if err := webhooks.Setup(mgr); err != nil {
		return fmt.Errorf("setting up webhooks: %w", err)
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
	logger.Info("Stopped")
	return nil
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
	utilruntime.Must(coordinationv1.AddToScheme(scheme))
	utilruntime.Must(admissionregistrationv1.AddToScheme(scheme))
	utilruntime.Must(v2alpha2.AddToScheme(scheme))
	return scheme
}
