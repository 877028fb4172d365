// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/classes"
	"github.com/muster-project/muster/pkg/grouping"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/version"
)

// Where certificates come from.
const (
	certificatesSelf     = "self"     // made, renewed and published by the program
	certificatesExternal = "external" // files that another program renews, for instance cert-manager
)

// serviceAccountNamespace is where a pod finds the name of its namespace.
const serviceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// options are the flags.
type options struct {
	kubeconfig   string
	namespace    string
	kubeAPIQPS   float32
	kubeAPIBurst int

	schedulerName      string
	schedulerLease     string
	waitImage          string
	stalledUpdateAfter time.Duration
	groupedKinds       []string
	otherSchedulers    []string
	kindRules          string
	classes            classes.Options

	webhookHost          string
	webhookPort          int
	webhookService       string
	webhookExtraHosts    []string
	webhookConfiguration string

	certManagement  string
	certDir         string
	certSecret      string
	certValidity    time.Duration
	certRenewBefore time.Duration

	metricsAddress string
	profiling      bool
	healthAddress  string

	leaderElect         bool
	leaderElectLease    string
	leaderLeaseDuration time.Duration
}

func defaultOptions() *options {
	return &options{
		namespace:            defaultNamespace(),
		kubeAPIQPS:           400,
		kubeAPIBurst:         800,
		schedulerName:        v1alpha1.DefaultSchedulerName,
		schedulerLease:       defaultNamespace() + "/" + v1alpha1.DefaultSchedulerName,
		waitImage:            "ghcr.io/muster-project/muster-wait:" + version.Version,
		stalledUpdateAfter:   10 * time.Minute,
		groupedKinds:         grouping.Names(),
		otherSchedulers:      membership.OtherSchedulers(),
		classes:              classes.DefaultOptions(),
		webhookPort:          9443,
		webhookService:       "muster-webhooks",
		webhookConfiguration: "muster-webhooks",
		certManagement:       certificatesSelf,
		certDir:              "/etc/muster/webhook-certs",
		certSecret:           "muster-webhooks-tls",
		certValidity:         365 * 24 * time.Hour,
		certRenewBefore:      90 * 24 * time.Hour,
		metricsAddress:       ":8443",
		profiling:            true,
		healthAddress:        ":8081",
		leaderElect:          true,
		leaderElectLease:     "muster-controller",
		leaderLeaseDuration:  15 * time.Second,
	}
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.kubeconfig, "kubeconfig", o.kubeconfig,
		"Path of a kubeconfig. Empty: $KUBECONFIG, the service account of the pod, then ~/.kube/config.")
	fs.StringVar(&o.namespace, "namespace", o.namespace,
		"Namespace of the webhook's Service and Secret and of the leader election Lease.")

	fs.Float32Var(&o.kubeAPIQPS, "kube-api-qps", o.kubeAPIQPS,
		"How many requests a second are sent to the API server on average. A workload of 1,000 pods takes about 2,500.")
	fs.IntVar(&o.kubeAPIBurst, "kube-api-burst", o.kubeAPIBurst,
		"How many requests are sent to the API server at the same time.")
	fs.StringVar(&o.schedulerName, "scheduler-name", o.schedulerName,
		"Scheduler of pods whose template in a PodCliqueSet names none.")
	fs.StringVar(&o.schedulerLease, "scheduler-lease", o.schedulerLease,
		"Namespace and name of the Lease that the scheduler of --scheduler-name renews. While it is not renewed, nothing is terminated or restarted because of pods that wait for that scheduler. Empty: it is not read.")
	fs.StringVar(&o.waitImage, "wait-image", o.waitImage,
		"Image of muster-wait, the init container of pods that start after others.")

	fs.DurationVar(&o.stalledUpdateAfter, "stalled-update-after", o.stalledUpdateAfter,
		"After how long without progress an update of a PodCliqueSet is said to have stalled, by the reason of its condition Progressing and an event. 0: never.")

	fs.StringSliceVar(&o.groupedKinds, "grouped-kinds", o.groupedKinds,
		"Kinds of workloads for whose gangs PodGroups are made: of a LeaderWorkerSet for each replica, of every JobSet, RayCluster and PodGroup of another scheduler, of the others if their pod templates have "+v2alpha2.MinMemberKey+". Empty: none; PodGroups that were made stay.")

	fs.StringSliceVar(&o.otherSchedulers, "other-schedulers", o.otherSchedulers,
		"Schedulers that Muster is not, whose pods may name PodGroups of other schedulers: of those that no other pod names no PodGroup of Muster is made. Empty: of all one is.")

	fs.StringVar(&o.kindRules, "kind-rules", o.kindRules,
		"File of rules that say which pods workloads of further kinds consist of, whose PodGroups are made too. Empty: there are none.")

	fs.StringVar(&o.classes.Class, "controller-class", o.classes.Class,
		"Class of the PodCliqueSets that are served: of those with this value in the annotation "+v1alpha1.ControllerClass+", or else in the label of that name of their namespace, and of those without a class if Grove's operator is not installed.")
	fs.StringVar(&o.classes.GroveLease, "grove-lease", o.classes.GroveLease,
		"Name of the Lease that shows that Grove's operator is installed. PodCliqueSets without a class are left to it.")
	fs.StringSliceVar(&o.classes.GroveNamespaces, "grove-namespaces", o.classes.GroveNamespaces,
		"Namespaces in which that Lease counts. Whoever may create Leases in one of them can stop the service of PodCliqueSets without a class. Empty: none.")

	fs.StringVar(&o.webhookHost, "webhook-host", o.webhookHost,
		"Address to serve webhooks on. Empty: all addresses. Outside of a cluster use 127.0.0.1 and write the url of each webhook in the webhook configurations.")
	fs.IntVar(&o.webhookPort, "webhook-port", o.webhookPort,
		"Port to serve webhooks on.")
	fs.StringVar(&o.webhookService, "webhook-service", o.webhookService,
		"Name of the Service through which the API server calls the webhooks.")
	fs.StringSliceVar(&o.webhookExtraHosts, "webhook-extra-hosts", o.webhookExtraHosts,
		"More DNS names and IP addresses that the certificate is made for, beside those of the Service, localhost, 127.0.0.1 and --webhook-host.")
	fs.StringVar(&o.webhookConfiguration, "webhook-configuration", o.webhookConfiguration,
		"Name of the ValidatingWebhookConfiguration and the MutatingWebhookConfiguration whose caBundles are kept up to date with --cert-management=self.")

	fs.StringVar(&o.certManagement, "cert-management", o.certManagement,
		"Who creates and renews the webhook's certificate. self: this program, in a Secret that its replicas share. external: another program, for instance cert-manager, as tls.crt and tls.key in --webhook-cert-dir; files that change are read again.")
	fs.StringVar(&o.certDir, "webhook-cert-dir", o.certDir,
		"Directory of tls.crt and tls.key with --cert-management=external.")
	fs.StringVar(&o.certSecret, "cert-secret", o.certSecret,
		"Name of the Secret that holds the certificate with --cert-management=self. Created if missing.")
	fs.DurationVar(&o.certValidity, "cert-validity", o.certValidity,
		"How long a certificate is made for with --cert-management=self.")
	fs.DurationVar(&o.certRenewBefore, "cert-renew-before", o.certRenewBefore,
		"How long before its end a certificate is renewed with --cert-management=self.")

	fs.StringVar(&o.metricsAddress, "metrics-bind-address", o.metricsAddress,
		"Address to serve /metrics on, by HTTPS, to those whom the API server allows to get that path. 0 turns it off.")
	fs.BoolVar(&o.profiling, "profiling", o.profiling,
		"Serve Go profiles at /debug/pprof/ of the address of /metrics, to those whom the API server allows to get that path.")
	fs.StringVar(&o.healthAddress, "health-probe-bind-address", o.healthAddress,
		"Address to serve /healthz and /readyz on, by plain HTTP. 0 turns it off.")

	fs.BoolVar(&o.leaderElect, "leader-elect", o.leaderElect,
		"Let one replica at a time run what must not run twice. Webhooks are served by every replica.")
	fs.StringVar(&o.leaderElectLease, "leader-elect-lease", o.leaderElectLease,
		"Name of the Lease for leader election.")
	fs.DurationVar(&o.leaderLeaseDuration, "leader-elect-lease-duration", o.leaderLeaseDuration,
		"How long a leader that has gone silent keeps the lead. It gives up itself at two thirds of this, and renews at an eighth.")
}

// schedulerLeaseName returns --scheduler-lease.
func (o *options) schedulerLeaseName() types.NamespacedName {
	namespace, name, _ := strings.Cut(o.schedulerLease, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// validate returns everything that is wrong with the flags, nil if nothing.
func (o *options) validate() error {
	var problems []string
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	switch o.certManagement {
	case certificatesSelf:
		if o.certSecret == "" {
			refuse("--cert-secret must not be empty with --cert-management=self")
		}
		if o.webhookConfiguration == "" {
			refuse("--webhook-configuration must not be empty with --cert-management=self")
		}
		// Certificates are valid from an hour before they are made.
		if o.certValidity < 2*time.Hour {
			refuse("--cert-validity is %s, must be at least 2h", o.certValidity)
		}
		if o.certRenewBefore <= 0 || o.certRenewBefore > o.certValidity-time.Hour-time.Minute {
			refuse("--cert-renew-before is %s, must be positive and leave more than an hour of --cert-validity %s", o.certRenewBefore, o.certValidity)
		}
	case certificatesExternal:
		if o.certDir == "" {
			refuse("--webhook-cert-dir must not be empty with --cert-management=external")
		}
	default:
		refuse("--cert-management is %q, must be %s or %s", o.certManagement, certificatesSelf, certificatesExternal)
	}
	if o.webhookPort < 1 || o.webhookPort > 65535 {
		refuse("--webhook-port is %d, must be from 1 to 65535", o.webhookPort)
	}
	if namespace, name, found := strings.Cut(o.schedulerLease, "/"); o.schedulerLease != "" && (!found || namespace == "" || name == "" || strings.Contains(name, "/")) {
		refuse("--scheduler-lease is %q, must be NAMESPACE/NAME or empty", o.schedulerLease)
	}
	if o.namespace == "" {
		refuse("--namespace must not be empty")
	}
	if o.kubeAPIQPS <= 0 || o.kubeAPIBurst < 1 {
		refuse("--kube-api-qps is %v and --kube-api-burst is %d, must be positive", o.kubeAPIQPS, o.kubeAPIBurst)
	}
	if o.schedulerName == "" {
		refuse("--scheduler-name must not be empty")
	}
	if errs := validation.IsValidLabelValue(o.classes.Class); o.classes.Class == "" || len(errs) > 0 {
		refuse("--controller-class is %q, must be the value of a label, and not empty", o.classes.Class)
	}
	if o.classes.GroveLease == "" {
		refuse("--grove-lease must not be empty; --grove-namespaces= turns it off")
	}
	if o.waitImage == "" {
		refuse("--wait-image must not be empty")
	}
	if o.stalledUpdateAfter < 0 {
		refuse("--stalled-update-after is %s, must not be negative", o.stalledUpdateAfter)
	}
	if _, err := grouping.Select(o.groupedKinds); err != nil {
		refuse("--grouped-kinds has %s", err)
	}
	if _, err := o.readRules(); err != nil {
		refuse("--kind-rules: %s", err)
	}
	if o.leaderElect && o.leaderElectLease == "" {
		refuse("--leader-elect-lease must not be empty with --leader-elect")
	}
	if o.leaderElect && o.leaderLeaseDuration < time.Second {
		refuse("--leader-elect-lease-duration is %s, must be at least 1s", o.leaderLeaseDuration)
	}
	if len(problems) > 0 {
		return fmt.Errorf("flags: %s", strings.Join(problems, "; "))
	}
	return nil
}

// webhookHosts returns the names and addresses that the webhook's certificate is made for.
func (o *options) webhookHosts() []string {
	var hosts []string
	add := func(names ...string) {
		for _, name := range names {
			if name != "" && !slices.Contains(hosts, name) {
				hosts = append(hosts, name)
			}
		}
	}
	if o.webhookService != "" {
		service := o.webhookService + "." + o.namespace
		add(service+".svc", service+".svc.cluster.local", service)
	}
	add("localhost", "127.0.0.1", "::1")
	if ip := net.ParseIP(o.webhookHost); ip == nil || !ip.IsUnspecified() {
		add(o.webhookHost)
	}
	add(o.webhookExtraHosts...)
	return hosts
}

// defaultNamespace is the namespace of the pod that the program runs in.
func defaultNamespace() string {
	if namespace := os.Getenv("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	if content, err := os.ReadFile(serviceAccountNamespace); err == nil {
		return strings.TrimSpace(string(content))
	}
	return "muster-system"
}

// readRules returns the kinds of --kind-rules.
func (o *options) readRules() ([]grouping.Kind, error) {
	if o.kindRules == "" {
		return nil, nil
	}
	file, err := os.ReadFile(o.kindRules)
	if err != nil {
		return nil, err
	}
	return grouping.ParseRules(file)
}
