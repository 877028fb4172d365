// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"

	"github.com/muster-project/muster/pkg/apis/config/profile"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// serverClock learns from responses how far the clock of this machine is ahead of that of the API server.
type serverClock struct {
	next http.RoundTripper
	now  func() time.Time

	mu    sync.Mutex
	ahead time.Duration // guarded by mu
	known bool          // guarded by mu
}

// RoundTrip implements http.RoundTripper.
func (c *serverClock) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := c.now()
	response, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		// The header has whole seconds, and the answer was made between the two times.
		c.ahead, c.known = sent.Add(c.now().Sub(sent)/2).Sub(date.Add(time.Second/2)), true
	}
	return response, nil
}

// read returns how far this machine's clock is ahead; known is false before the first response.
func (c *serverClock) read() (ahead time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead, c.known
}

// clockLimit is by how much clocks may differ.
const clockLimit = 5 * time.Second

// differs says how far a clock is ahead of, or behind, that of the API server. "": no further than clockLimit.
func differs(whose string, ahead time.Duration) string {
	word := "ahead of"
	if ahead < 0 {
		ahead, word = -ahead, "behind"
	}
	if ahead <= clockLimit {
		return ""
	}
	return fmt.Sprintf("%s is %s %s that of the API server", whose, duration.HumanDuration(ahead.Round(time.Second)), word)
}

// checkClock compares the clock of this machine with that of the API server.
func (d *Doctor) checkClock(c *serverClock) {
	ahead, known := c.read()
	switch text := differs("this machine's clock", ahead); {
	case !known:
		d.add("clock", stateUnknown, "the API server does not say what time it has")
	case text != "":
		d.add("clock", stateProblem, text+": ages are wrong by that; set it")
	default:
		d.add("clock", stateOK, "this machine's clock agrees with that of the API server")
	}
}

// checkNativeGangs says what PodGroups of Kubernetes itself mean here.
func (d *Doctor) checkNativeGangs(client kubernetes.Interface) {
	const name = "gangs of Kubernetes"
	lists, err := client.Discovery().ServerPreferredResources()
	if err != nil && len(lists) == 0 {
		d.add(name, stateUnknown, fmt.Sprintf("what the API server serves could not be read: %v", err))
		return
	}
	for _, list := range lists {
		group, version, _ := strings.Cut(list.GroupVersion, "/")
		if group == membership.NativeGroup && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "podgroups" }) {
			d.add(name, stateOK, fmt.Sprintf("the API server serves PodGroups of %s/%s: pods of muster-scheduler that name one by spec.schedulingGroup are in a gang of muster-scheduler", group, version))
			return
		}
	}
	d.add(name, stateOK, "the feature gate GenericWorkload of the API server is off: it drops spec.schedulingGroup from pods, which start alone then")
}

// readController returns the Deployment of muster-controller; nil: it cannot be read. isAlone: there is none, so that
// muster-scheduler is alone.
func (d *Doctor) readController(ctx context.Context, client kubernetes.Interface) (controller *appsv1.Deployment, isAlone bool) {
	controller, err := client.AppsV1().Deployments(d.in()).Get(ctx, "muster-controller", metav1.GetOptions{})
	if err != nil {
		return nil, apierrors.IsNotFound(err)
	}
	return controller, false
}

// checkPrograms checks what the programs are told by their Deployments. controller is that of muster-controller; nil:
// it is not known.
func (d *Doctor) checkPrograms(ctx context.Context, client kubernetes.Interface, controller *appsv1.Deployment, now time.Time) {
	const name = "programs"
	scheduler, err := client.AppsV1().Deployments(d.in()).Get(ctx, "muster-scheduler", metav1.GetOptions{})
	if err != nil {
		state := stateUnknown
		if apierrors.IsNotFound(err) {
			d.add(name, state, "there is no Deployment "+d.in()+"/muster-scheduler: how it is configured is not known")
			return
		}
		d.add(name, state, fmt.Sprintf("Deployment %s/muster-scheduler could not be read: %v", d.in(), err))
		return
	}
	if err := kubescheduler.RefuseGateFlags(arguments(scheduler, "--feature-gates")); err != nil {
		d.add(name, stateProblem, fmt.Sprintf("muster-scheduler does not start: %v", err))
		return
	}
	profiles, err := profilesOf(ctx, client, scheduler)
	if refused := (*configError)(nil); errors.As(err, &refused) {
		d.add(name, stateProblem, fmt.Sprintf("muster-scheduler of this version does not start: %v", err))
		return
	} else if err != nil {
		d.add(name, stateUnknown, fmt.Sprintf("the profiles of muster-scheduler could not be read: %v", err))
		return
	}
	others := membership.OtherSchedulers()
	if controller != nil {
		if given := arguments(controller, "--other-schedulers"); len(given) > 0 {
			others = strings.Split(strings.Join(given, ","), ",")
		}
		if both := sets.New(profiles...).Intersection(sets.New(others...)); both.Len() > 0 {
			d.add(name, stateProblem, fmt.Sprintf("muster-scheduler serves the schedulerName %s, and --other-schedulers of muster-controller says that another scheduler does: "+
				"no PodGroup is made of one of another scheduler that only its pods name; take it out there", strings.Join(sets.List(both), ", ")))
			return
		}
	}
	if slices.Contains(profiles, corev1.DefaultSchedulerName) {
		lease, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, "kube-scheduler", metav1.GetOptions{})
		if err == nil && lease.Spec.RenewTime != nil && now.Sub(lease.Spec.RenewTime.Time) < leaseLimit {
			d.add(name, stateProblem, "muster-scheduler serves the schedulerName default-scheduler, and kube-scheduler runs, too: both schedule each of its pods; end one of them")
			return
		}
	}
	d.add(name, stateOK, "muster-scheduler serves the schedulerName "+strings.Join(profiles, ", "))
}

// arguments returns the values of a flag of the first container of a Deployment, in their order.
func arguments(deployment *appsv1.Deployment, flag string) []string {
	if len(deployment.Spec.Template.Spec.Containers) == 0 {
		return nil
	}
	c := &deployment.Spec.Template.Spec.Containers[0]
	args := slices.Concat(c.Command, c.Args)
	var values []string
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			values = append(values, value)
		} else if arg == flag && i+1 < len(args) {
			values = append(values, args[i+1])
		}
	}
	return values
}

// configError is why muster-scheduler does not start with its file.
type configError struct {
	file string // "config.yaml of ConfigMap muster-scheduler-config"
	err  error
}

// Error implements error.
func (e *configError) Error() string { return e.file + ": " + e.err.Error() }

// profilesOf returns the schedulerNames that muster-scheduler serves: those of the file in a ConfigMap that it is
// given, or the built-in one. A configError: it does not start with the file.
func profilesOf(ctx context.Context, client kubernetes.Interface, scheduler *appsv1.Deployment) ([]string, error) {
	paths := arguments(scheduler, "--config")
	if len(paths) == 0 {
		return []string{profile.SchedulerName}, nil
	}
	path := paths[len(paths)-1]
	spec := &scheduler.Spec.Template.Spec
	for _, mount := range spec.Containers[0].VolumeMounts {
		key, inside := strings.CutPrefix(path, strings.TrimSuffix(mount.MountPath, "/")+"/")
		if !inside {
			continue
		}
		for _, volume := range spec.Volumes {
			if volume.Name != mount.Name || volume.ConfigMap == nil {
				continue
			}
			config, err := client.CoreV1().ConfigMaps(scheduler.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			file, err := profile.Decode([]byte(config.Data[key]))
			if err == nil {
				err = kubescheduler.RefuseGangPlugins(file.Profiles)
			}
			if err != nil {
				return nil, &configError{fmt.Sprintf("%s of ConfigMap %s", key, config.Name), err}
			}
			var names []string
			for _, p := range file.Profiles {
				names = append(names, p.SchedulerName)
			}
			return names, nil
		}
	}
	return nil, fmt.Errorf("%s is in no ConfigMap", path)
}
