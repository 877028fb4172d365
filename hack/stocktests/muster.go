// SPDX-License-Identifier: Apache-2.0

// Package muster makes muster-scheduler in the process of the stock scheduler's own integration tests, which are built
// in this module (test/stocktests). It takes the place of the function with which they make kube-scheduler.
package muster

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	schedulerprofile "k8s.io/kubernetes/pkg/scheduler/profile"
	_ "k8s.io/kubernetes/test/integration/util" // the tests import it and what it needs: go.sum has all of that

	"github.com/muster-project/muster/pkg/apis/config/profile"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
	"github.com/muster-project/muster/pkg/scheduler/gangadmission"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// New is scheduler.New, followed by what pkg/scheduler/command.go does to make it muster-scheduler. Profiles that the
// options name admit gangs as the built-in profile does; without any there is that one, under the stock name. There are
// no PodGroups and Topologies: the API server of the tests has no CRDs.
func New(ctx context.Context, client kubernetes.Interface, shared informers.SharedInformerFactory, dynamic dynamicinformer.DynamicSharedInformerFactory,
	recorders schedulerprofile.RecorderFactory, options ...scheduler.Option) (*scheduler.Scheduler, error) {
	profiles, err := profilesWithGangs(settingOf[[]config.KubeSchedulerProfile](options, "profiles"))
	if err != nil {
		return nil, err
	}
	if err := kubescheduler.RefuseGangPlugins(profiles); err != nil {
		return nil, err
	}
	gangs := gangadmission.New()
	gangs.IgnoreWorkloads()
	plugins := frameworkruntime.Registry{gangadmission.GateName: gangs.NewGate, gangadmission.Name: gangs.NewAdmission,
		kubescheduler.GPUPackingName: kubescheduler.NewGPUPacking}
	maps.Copy(plugins, settingOf[frameworkruntime.Registry](options, "frameworkOutOfTreeRegistry"))
	server := rest.CopyConfig(settingOf[*rest.Config](options, "kubeConfig"))
	server.Wrap(func(others http.RoundTripper) http.RoundTripper { return withoutObjects{others} })
	sched, err := scheduler.New(ctx, client, shared, dynamic, recorders, slices.Concat(options,
		[]scheduler.Option{scheduler.WithProfiles(profiles...), scheduler.WithFrameworkOutOfTreeRegistry(plugins), scheduler.WithKubeConfig(server)})...)
	if err != nil {
		return nil, err
	}
	return sched, gangs.Attach(sched)
}

// settingOf returns what the options set a field of kube-scheduler's settings to, which are not exported. The zero
// value: nothing.
func settingOf[T any](options []scheduler.Option, field string) T {
	settings := reflect.New(reflect.TypeFor[scheduler.Option]().In(0).Elem())
	for _, option := range options {
		reflect.ValueOf(option).Call([]reflect.Value{settings})
	}
	value := settings.Elem().FieldByName(field)
	return *(*T)(reflect.NewAt(value.Type(), value.Addr().UnsafePointer()).UnsafePointer())
}

// profilesWithGangs returns the profiles with Muster's plugins where the built-in profile has them.
func profilesWithGangs(profiles []config.KubeSchedulerProfile) ([]config.KubeSchedulerProfile, error) {
	builtin, err := profile.Default()
	if err != nil {
		return nil, err
	}
	if len(profiles) == 0 {
		builtin.Profiles[0].SchedulerName = corev1.DefaultSchedulerName
		return builtin.Profiles, nil
	}
	admission := func(c config.PluginConfig) bool { return c.Name == gangadmission.Name }
	args := builtin.Profiles[0].PluginConfig[slices.IndexFunc(builtin.Profiles[0].PluginConfig, admission)]
	with := make([]config.KubeSchedulerProfile, 0, len(profiles))
	for _, p := range profiles {
		p = *p.DeepCopy()
		if p.Plugins == nil {
			p.Plugins = &config.Plugins{}
		}
		withGangs(p.Plugins)
		p.PluginConfig = append(p.PluginConfig, args)
		with = append(with, p)
	}
	return with, nil
}

func withGangs(plugins *config.Plugins) {
	points := reflect.ValueOf(plugins).Elem()
	for i := range points.NumField() {
		set := points.Field(i).Addr().Interface().(*config.PluginSet)
		set.Enabled = slices.DeleteFunc(set.Enabled, func(p config.Plugin) bool {
			return p.Name == names.DefaultPreemption || p.Name == names.PrioritySort
		})
	}
	// Those that are named twice come first.
	plugins.MultiPoint.Enabled = append(plugins.MultiPoint.Enabled, config.Plugin{Name: gangadmission.GateName}, config.Plugin{Name: gangadmission.Name})
	plugins.PreEnqueue.Enabled = slices.Insert(plugins.PreEnqueue.Enabled, 0, config.Plugin{Name: gangadmission.GateName})
	for _, set := range []*config.PluginSet{&plugins.QueueSort, &plugins.PreFilter, &plugins.Filter, &plugins.PostFilter,
		&plugins.Reserve, &plugins.Permit, &plugins.Bind, &plugins.PostBind} {
		set.Enabled = slices.Insert(set.Enabled, 0, config.Plugin{Name: gangadmission.Name})
	}
}

// withoutObjects answers requests for custom resources as if there were none, and never any, and passes on others.
type withoutObjects struct{ others http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t withoutObjects) RoundTrip(request *http.Request) (*http.Response, error) {
	kind, version := "", ""
	for list, of := range map[string]schema.GroupVersion{"PodGroupList": v2alpha2.SchemeGroupVersion, "TopologyList": topologyv1alpha1.SchemeGroupVersion} {
		if strings.HasPrefix(request.URL.Path, "/apis/"+of.String()+"/") {
			kind, version = list, of.String()
		}
	}
	if kind == "" {
		return t.others.RoundTrip(request)
	}
	var body io.ReadCloser
	if request.URL.Query().Has("watch") {
		events, end := io.Pipe()
		context.AfterFunc(request.Context(), func() { end.CloseWithError(request.Context().Err()) })
		body = events
	} else {
		body = io.NopCloser(strings.NewReader(fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1"},"items":[]}`, kind, version)))
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: request}, nil
}
