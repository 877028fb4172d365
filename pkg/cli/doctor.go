// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"

	"github.com/muster-project/muster/manifests"
	"github.com/muster-project/muster/pkg/apis/config/profile"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/snapshot"
	"github.com/muster-project/muster/pkg/version"
)

// Doctor is whether Muster works, as far as a user can see it.
type Doctor struct {
	typeMeta `json:",inline"`
	Checks   []Check   `json:"checks"`
	Taken    time.Time `json:"taken"`

	namespace string // of Muster's programs; "": musterNamespace
}

// Check is one thing that was looked at.
type Check struct {
	Name string `json:"name"`
	// State is ok, problem, or unknown (it could not be told).
	State   string `json:"state"`
	Message string `json:"message"`
}

// States of a Check.
const (
	stateOK      = "ok"
	stateProblem = "problem"
	stateUnknown = "unknown"
)

// musterNamespace is the namespace of Muster's programs in the manifests.
const musterNamespace = "muster-system"

func newDoctor(o *options) *cobra.Command {
	namespace := ""
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check whether Muster works: CRDs, rights, leases, webhooks, pods of no scheduler",
		Long: `Check whether Muster works, as far as its objects show: CRDs, the leases and rights of both programs, the certificates of the webhooks, PodGroups
without a status, pods of gangs that name another scheduler, and PriorityClasses. With --snapshot only what is in the file. Exit code 2: there
is a problem.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.doctor(cmd.Context(), namespace) },
	}
	cmd.Flags().StringVar(&namespace, "muster-namespace", musterNamespace, "The namespace of Muster's programs.")
	_ = cmd.RegisterFlagCompletionFunc("muster-namespace", o.completeNames("namespaces", false))
	return cmd
}

// in returns the namespace of Muster's programs.
func (d *Doctor) in() string { return cmp.Or(d.namespace, musterNamespace) }

func (o *options) doctor(ctx context.Context, namespace string) error {
	w, err := o.world(ctx)
	if err != nil {
		return err
	}
	d := &Doctor{typeMeta: metaOf("Doctor"), Taken: w.snapshot.Taken, namespace: namespace}
	d.checkKinds(w.snapshot)
	if o.snapshot == "" {
		if err := o.askCluster(ctx, d); err != nil {
			return err
		}
	}
	d.checkGangs(w)
	d.checkClasses(w)
	if err := o.print(d, func(out io.Writer) { o.printDoctor(out, d) }); err != nil {
		return err
	}
	if slices.ContainsFunc(d.Checks, func(c Check) bool { return c.State == stateProblem }) {
		return errBlocked
	}
	return nil
}

// askCluster checks what is not in a snapshot. Times are compared by the clock of the API server.
func (o *options) askCluster(ctx context.Context, d *Doctor) error {
	config, err := o.restConfig()
	if err != nil {
		return err
	}
	clock := &serverClock{now: o.now}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		clock.next = next
		return clock
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	d.checkVersions(client)
	d.checkNativeGangs(client)
	d.checkClock(clock)
	ahead, _ := clock.read()
	now := o.now().Add(-ahead)
	d.checkLease(ctx, client, "muster-scheduler", now)
	d.checkLease(ctx, client, "muster-controller", now)
	controller, isAlone := d.readController(ctx, client)
	d.checkPrograms(ctx, client, controller, now)
	d.checkRights(ctx, client, "muster-scheduler", manifests.SchedulerRBAC, noRule)
	if !isAlone {
		d.checkRights(ctx, client, "muster-controller", manifests.ControllerRBAC, unneededRule(controller))
	}
	d.checkWebhooks(ctx, client, now)
	return nil
}

func (d *Doctor) add(name, state, text string) { d.Checks = append(d.Checks, Check{name, state, text}) }

// checkKinds checks the CRDs; without that of PodGroups nothing could be read.
func (d *Doctor) checkKinds(s *snapshot.Snapshot) {
	skew, newer := version.ServerSkew(s.Server)
	switch {
	case newer: // works as far as is known
		d.add("API server", stateUnknown, s.Server+" "+skew)
	case skew != "":
		d.add("API server", stateProblem, s.Server+" "+skew)
	default:
		d.add("API server", stateOK, cmp.Or(s.Server, "of an unknown version"))
	}
	d.add("podgroups."+v2alpha2.GroupName, stateOK, message.Count(len(snapshot.All[*v2alpha2.PodGroup](s)), "PodGroup"))
	for _, u := range s.Unread {
		switch {
		case u.Why == snapshot.WhyMissing && strings.Contains(u.Resource, "."):
			d.add(u.Resource, stateOK, "the API server does not have it: nothing uses it")
		case u.Why != snapshot.WhyMissing:
			d.add(u.Resource, stateUnknown, fmt.Sprintf("could not be listed (%s): this command answers without %s", u.Why, u.Without))
		}
	}
}

// leaseLimit is how old a renewal may be.
const leaseLimit = time.Minute

func (d *Doctor) checkLease(ctx context.Context, client kubernetes.Interface, name string, now time.Time) {
	lease, err := client.CoordinationV1().Leases(d.in()).Get(ctx, name, metav1.GetOptions{})
	what := fmt.Sprintf("Lease %s/%s", d.in(), name)
	switch {
	case apierrors.IsNotFound(err):
		d.add(name, stateProblem, what+" does not exist: the program has never led here, runs without leader election, or is in another namespace (--muster-namespace)")
	case err != nil:
		d.add(name, stateUnknown, fmt.Sprintf("%s could not be read: %v", what, err))
	case lease.Spec.RenewTime == nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "":
		d.add(name, stateProblem, what+" has no holder: the program does not run")
	case now.Sub(lease.Spec.RenewTime.Time) > leaseLimit:
		d.add(name, stateProblem, fmt.Sprintf("%s was renewed %s ago: the program does not run, or does not reach the API server", what, age(lease.Spec.RenewTime.Time, now)))
	case differs("its clock", lease.Spec.RenewTime.Sub(now)) != "" && lease.Spec.RenewTime.After(now):
		d.add(name, stateProblem, fmt.Sprintf("%s leads, and %s: set the clock of its node", *lease.Spec.HolderIdentity, differs("its clock", lease.Spec.RenewTime.Sub(now))))
	default:
		d.add(name, stateOK, fmt.Sprintf("%s leads", *lease.Spec.HolderIdentity))
	}
}

// expiryLimit is how long the certificates of webhooks must be valid still.
const expiryLimit = 24 * time.Hour

// checkWebhooks checks that the certificates by which the API server trusts the webhooks are valid.
func (d *Doctor) checkWebhooks(ctx context.Context, client kubernetes.Interface, now time.Time) {
	const name = "muster-webhooks"
	validating, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		d.add("webhooks", stateOK, "there is no ValidatingWebhookConfiguration "+name+": PodGroups are checked by their CRD and the scheduler alone")
		return
	}
	if err != nil {
		d.add("webhooks", stateUnknown, fmt.Sprintf("ValidatingWebhookConfiguration %s could not be read: %v", name, err))
		return
	}
	for _, webhook := range validating.Webhooks {
		if why := bundleProblem(webhook.ClientConfig.CABundle, now); why != "" {
			d.add("webhooks", stateProblem, fmt.Sprintf("webhook %s has %s: muster-controller, or cert-manager, has to write one", webhook.Name, why))
			return
		}
	}
	d.add("webhooks", stateOK, message.Count(len(validating.Webhooks), "validating webhook")+" with valid certificates of their authority")
}

// bundleProblem is what is wrong with a bundle of certificates, "" if one of them is valid.
func bundleProblem(bundle []byte, now time.Time) string {
	problem := "no caBundle"
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		switch {
		case err != nil:
			problem = "a caBundle that is no certificate"
		case now.After(cert.NotAfter):
			problem = "a caBundle that has expired"
		case now.Add(expiryLimit).After(cert.NotAfter):
			problem = "a caBundle that expires within a day"
		default:
			return ""
		}
	}
	return problem
}

// statusLimit is how long a PodGroup with pods may be without a status.
const statusLimit = time.Minute

// checkGangs checks that the scheduler answers for PodGroups, and that the pods of each gang name one scheduler.
func (d *Doctor) checkGangs(w *world) {
	var silent, invalid []string
	schedulers := map[gangs.Key]sets.Set[string]{}
	for _, pod := range w.pods {
		if name := membership.Group(pod); name != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			key := gangs.Key{Namespace: pod.Namespace, Name: name}
			if schedulers[key] == nil {
				schedulers[key] = sets.New[string]()
			}
			schedulers[key].Insert(pod.Spec.SchedulerName)
		}
	}
	known := sets.New[gangs.Key]()
	for _, g := range snapshot.All[*v2alpha2.PodGroup](w.snapshot) {
		key := gangs.Key{Namespace: g.Namespace, Name: g.Name}
		known.Insert(key)
		if schedulers[key].Has(profile.SchedulerName) && g.Status.ObservedGeneration < g.Generation && w.snapshot.Taken.Sub(g.CreationTimestamp.Time) > statusLimit {
			silent = append(silent, key.String())
		}
		if g.Status.Phase == v2alpha2.PodGroupInvalid {
			invalid = append(invalid, key.String())
		}
	}
	d.none("PodGroups without a status", silent, "muster-scheduler has not answered for %s with pods: it does not run, or is slow", "PodGroup")
	d.none("PodGroups that are not valid", invalid, "%s never start: kubectl muster why says what is wrong", "PodGroup")
	var mixed, foreign, missing []string
	for _, key := range slices.SortedFunc(maps.Keys(schedulers), func(a, b gangs.Key) int { return cmp.Compare(a.String(), b.String()) }) {
		switch names := schedulers[key]; {
		case len(names) > 1:
			mixed = append(mixed, key.String())
		case !names.Has(profile.SchedulerName):
			foreign = append(foreign, key.String())
		case !known.Has(key):
			missing = append(missing, key.String())
		}
	}
	d.none("gangs over several schedulers", mixed, "the pods of %s name different schedulers: they start one by one", "gang")
	d.none("gangs of other schedulers", foreign, "the pods of %s do not have schedulerName "+profile.SchedulerName, "gang")
	d.none("pods without their PodGroup", missing, "the pods of %s wait: there is no such PodGroup", "gang")
}

// none adds a check that is ok if there are no names. text has a place for their number.
func (d *Doctor) none(name string, names []string, text, noun string) {
	if len(names) == 0 {
		d.add(name, stateOK, "none")
		return
	}
	d.add(name, stateProblem, fmt.Sprintf(text, message.Count(len(names), noun))+" ("+message.ListNames(names, maxListed, len(names), ", ")+")")
}

// checkClasses checks whether pods without a class can be preempted by those that have one.
func (d *Doctor) checkClasses(w *world) {
	highest, class := int32(0), ""
	for name, c := range w.Classes {
		if c.Value > highest && !strings.HasPrefix(name, "system-") {
			highest, class = c.Value, name
		}
	}
	if class == "" {
		d.add("priorities", stateOK, "no PriorityClass is above 0")
		return
	}
	pods := 0
	for key, of := range w.Pods {
		for _, pod := range of {
			if key.Name == "" && pod.Spec.PriorityClassName == "" && pod.Spec.SchedulerName == profile.SchedulerName && (pod.Spec.Priority == nil || *pod.Spec.Priority <= 0) {
				pods++
			}
		}
	}
	text := fmt.Sprintf("the highest PriorityClass is %s (%d)", class, highest)
	if pods > 0 {
		text += fmt.Sprintf("; %s without a class may be preempted by gangs of a higher priority", message.Count(pods, "pod"))
	}
	d.add("priorities", stateOK, text)
}

func (o *options) printDoctor(w io.Writer, d *Doctor) {
	for _, c := range d.Checks {
		colour := map[string]string{stateOK: green, stateProblem: red, stateUnknown: yellow}[c.State]
		for i, line := range wrap(c.Name+": "+c.Message, o.width()-9) {
			label := ""
			if i == 0 {
				label = c.State
			}
			fmt.Fprintf(w, "%s%s%s\n", o.colour(colour, label), strings.Repeat(" ", 9-len(label)), line)
		}
	}
}
