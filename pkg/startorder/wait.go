// SPDX-License-Identifier: Apache-2.0

package startorder

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// Waiter waits until requirements are met.
type Waiter struct {
	// Namespace, Set and Replica identify the PodCliques and PodCliqueScalingGroups to watch.
	Namespace, Set string
	Replica        int
	Requirements   []lifecycle.Requirement
}

// Wait returns nil when all requirements are met, immediately if there are none. It retries while the API server is
// unavailable and while the permissions do not exist yet. It returns the error of ctx when ctx ends.
func (w Waiter) Wait(ctx context.Context, config *rest.Config) error {
	if len(w.Requirements) == 0 {
		return nil
	}
	api, parameters, err := clientFor(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // a notification is pending
		}
	}
	cliques, cliquesSynced := w.watchObjects(ctx, api, parameters, "podcliques", &v1alpha1.PodClique{}, &v1alpha1.PodCliqueList{}, notify)
	groups, groupsSynced := w.watchObjects(ctx, api, parameters, "podcliquescalinggroups", &v1alpha1.PodCliqueScalingGroup{}, &v1alpha1.PodCliqueScalingGroupList{}, notify)
	if !cache.WaitForCacheSync(ctx.Done(), cliquesSynced, groupsSynced) {
		return ctx.Err()
	}

	logger, logged := klog.FromContext(ctx), ""
	notify()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
		unmet := w.unmetRequirements(cliques.List(), groups.List())
		if len(unmet) == 0 {
			logger.Info("All required cliques have started")
			return nil
		}
		if reason := lifecycle.Describe(unmet); reason != logged {
			logger.Info("Waiting for cliques to start", "reason", reason)
			logged = reason
		}
	}
}

// watchObjects maintains a store of the objects of one resource that belong to the replica, and calls changed after
// every change.
func (w Waiter) watchObjects(ctx context.Context, api rest.Interface, parameters runtime.ParameterCodec, resource string, kind, list runtime.Object, changed func()) (cache.Store, cache.InformerSynced) {
	selector := labels.SelectorFromSet(naming.OfSetReplica(w.Set, w.Replica)).String()
	request := func(options metav1.ListOptions) *rest.Request {
		options.LabelSelector = selector
		return api.Get().Namespace(w.Namespace).Resource(resource).VersionedParams(&options, parameters)
	}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				into := list.DeepCopyObject()
				return into, request(options).Do(ctx).Into(into)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.Watch = true
				return request(options).Watch(ctx)
			},
		},
		ObjectType: kind,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { changed() },
			UpdateFunc: func(any, any) { changed() },
			DeleteFunc: func(any) { changed() },
		},
	})
	go informer.RunWithContext(ctx)
	return store, informer.HasSynced
}

// unmetRequirements returns the requirements that the given PodCliques and PodCliqueScalingGroups of the replica do not
// meet.
func (w Waiter) unmetRequirements(cliques, groups []any) []lifecycle.Requirement {
	var cliqueFacts []lifecycle.Clique
	for _, o := range cliques {
		cliqueFacts = append(cliqueFacts, workload.CliqueFacts(o.(*v1alpha1.PodClique)))
	}
	var groupFacts []lifecycle.ScalingGroup
	for _, o := range groups {
		groupFacts = append(groupFacts, workload.ScalingGroupFacts(o.(*v1alpha1.PodCliqueScalingGroup)))
	}
	return lifecycle.Unmet(w.Requirements, cliqueFacts, groupFacts)
}

// clientFor returns a client of the workload API.
func clientFor(config *rest.Config) (rest.Interface, runtime.ParameterCodec, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, nil, err
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = &v1alpha1.SchemeGroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client: %w", err)
	}
	return client, runtime.NewParameterCodec(scheme), nil
}
