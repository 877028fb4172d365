// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/controllers/grouper"
	"github.com/muster-project/muster/pkg/controllers/podclique"
	"github.com/muster-project/muster/pkg/controllers/podcliquescalinggroup"
	"github.com/muster-project/muster/pkg/controllers/podcliqueset"
)

// Options of the controllers. Without a Clock they have the real clock.
type Options = children.Options

// defaultStandstillLimit is that of the default lease.
const defaultStandstillLimit = 10 * time.Second

// Setup registers the controllers with a manager, whose cache has CacheOptions.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := children.IndexAll(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	cached, live := mgr.GetClient(), mgr.GetAPIReader()
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Pulse == nil {
		o.Pulse = children.NewPulse(cmp.Or(o.StandstillLimit, defaultStandstillLimit), o.Clock)
		if err := mgr.Add(o.Pulse); err != nil {
			return fmt.Errorf("adding the pulse: %w", err)
		}
	}
	o.Witness = children.NewWitness(cached, live, o)
	for _, controller := range []struct {
		name  string
		setup func(ctrl.Manager) error
	}{
		{"PodCliqueSet", podcliqueset.New(cached, live, o).SetupWithManager},
		{"PodCliqueScalingGroup", podcliquescalinggroup.New(cached, live, o).SetupWithManager},
		{"PodClique", podclique.New(cached, live, o).SetupWithManager},
	} {
		if err := controller.setup(mgr); err != nil {
			return fmt.Errorf("setting up the %s controller: %w", controller.name, err)
		}
	}
	return grouper.Setup(mgr, o)
}

// AddCacheOptions restricts a manager's cache, for the controllers, to objects that they create, and
// drops fields that no controller reads.
func AddCacheOptions(options *cache.Options, o Options) {
	if options.ByObject == nil {
		options.ByObject = map[client.Object]cache.ByObject{}
	}
	managed := cache.ByObject{Label: children.ManagedSelector()}
	for _, kind := range []client.Object{&corev1.Pod{}, &corev1.Service{}, &autoscalingv2.HorizontalPodAutoscaler{}, &appsv1.ControllerRevision{}} {
		options.ByObject[kind] = managed
	}
	options.ByObject[&v2alpha2.PodGroup{}] = cache.ByObject{Label: children.MadeSelector()}
	options.ByObject[&corev1.Node{}] = cache.ByObject{Transform: podclique.StripNode}
	o.Classes.AddCacheOptions(options)
	options.DefaultTransform = cache.TransformStripManagedFields()
}
