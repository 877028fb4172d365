// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/controlplane"
)

// observer watches the cluster as any client could, and measures for how long gangs are partly bound.
type observer struct {
	stores map[reflect.Type]toolscache.Store // of the watches

	mu      sync.Mutex
	changed chan struct{} // guarded by mu; closed and replaced at every change
	partial partialGangs  // guarded by mu
	claims  []claim       // guarded by mu; have to hold in every scene
	broken  string        // guarded by mu; the first claim that did not hold, "" if all did
}

// watched has an object of each kind that is watched.
var watched = []client.Object{&corev1.Node{}, &corev1.Pod{}, &corev1.Service{}, &v2alpha2.PodGroup{},
	&v1alpha1.PodCliqueSet{}, &v1alpha1.PodCliqueScalingGroup{}, &v1alpha1.PodClique{}}

// newObserver returns when its caches have synced. The observer stops with ctx.
func newObserver(ctx context.Context, cp *controlplane.ControlPlane) (*observer, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), v2alpha2.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	seen, err := cache.New(cp.Admin(), cache.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	o := &observer{stores: map[reflect.Type]toolscache.Store{}, changed: make(chan struct{}),
		partial: partialGangs{since: map[string]time.Time{}, whole: map[string]bool{}}}
	for _, object := range watched {
		informer, err := seen.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		o.stores[reflect.TypeOf(object)] = informer.(toolscache.SharedIndexInformer).GetStore()
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { o.note() },
			UpdateFunc: func(any, any) { o.note() },
			DeleteFunc: func(any) { o.note() },
		}); err != nil {
			return nil, err
		}
	}
	go func() { _ = seen.Start(ctx) }()
	if !seen.WaitForCacheSync(ctx) {
		return nil, context.Cause(ctx)
	}
	return o, nil
}

// note checks the new scene and notifies those that wait for a change.
func (o *observer) note() {
	s, now := o.scene(), time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.partial.look(s, now)
	o.look(s)
	close(o.changed)
	o.changed = make(chan struct{})
}

// look records the first of o.claims that does not hold in a scene. The caller holds mu.
func (o *observer) look(s scene) {
	for _, open := range openClaims(o.claims, s) {
		if o.broken == "" {
			o.broken = open
		}
	}
}

// throughout makes the observer check these claims in every scene from now on, and forget the earlier ones.
func (o *observer) throughout(claims []claim) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.claims, o.broken = claims, ""
}

// scene returns the objects that the watches have delivered so far, sorted by name.
func (o *observer) scene() scene {
	return scene{
		nodes:         objects[*corev1.Node](o),
		pods:          objects[*corev1.Pod](o),
		services:      objects[*corev1.Service](o),
		groups:        objects[*v2alpha2.PodGroup](o),
		sets:          objects[*v1alpha1.PodCliqueSet](o),
		scalingGroups: objects[*v1alpha1.PodCliqueScalingGroup](o),
		cliques:       objects[*v1alpha1.PodClique](o),
	}
}

func objects[T client.Object](o *observer) []T {
	var all []T
	for _, object := range o.stores[reflect.TypeFor[T]()].List() {
		all = append(all, object.(T))
	}
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all
}

// partialGangs measures for how long gangs whose minimum was not bound yet are partly bound, and records a gang with a
// pod above the minimum that was bound before the minimum.
type partialGangs struct {
	since   map[string]time.Time // partly bound since then
	whole   map[string]bool      // its minimum was bound once
	longest time.Duration
	early   string // a gang with surplus bound before its minimum
}

func (p *partialGangs) look(s scene, now time.Time) {
	for _, group := range s.groups {
		tree, err := podgroup.Tree(&group.Spec)
		if err != nil || p.whole[group.Name] {
			continue
		}
		bound := s.bound(group.Name)
		if !tree.Satisfied(bound) && total(bound) > tree.MinPods()-tree.MissingPods(bound) {
			p.early = group.Name
		}
		if since, partial := p.since[group.Name]; partial {
			p.longest = max(p.longest, now.Sub(since))
		} else {
			p.since[group.Name] = now
		}
		p.whole[group.Name] = tree.Satisfied(bound)
		if p.whole[group.Name] || total(bound) == 0 {
			delete(p.since, group.Name)
		}
	}
}

// maxPartial is far more than posting the bindings of a gang takes, even on a slow and busy machine.
const maxPartial = 5 * time.Second

// check returns an error if a gang was partly bound for long, or had a pod above its minimum bound before the minimum
// was.
func (p *partialGangs) check() error {
	if p.longest > maxPartial {
		return fmt.Errorf("a gang was partly bound for %s before its minimum was bound; posting its bindings takes less than %s", p.longest, maxPartial)
	}
	if p.early != "" {
		return fmt.Errorf("a pod above the minimum of %s was bound before the minimum was", p.early)
	}
	return nil
}

// patience is how long a step may take. Steps usually take seconds.
const patience = 40 * time.Second

// play calls act, and returns the first scene after it in which all claims of the step hold, if those that have to hold
// first did in an earlier one. tell is called with every scene until then. An error names the claims that do not hold,
// or the one that did not hold throughout.
func (o *observer) play(ctx context.Context, of step, act func(context.Context) error, tell func(scene)) (scene, error) {
	o.throughout(of.throughout)
	defer o.throughout(nil)
	acting, cancel := context.WithCancel(ctx)
	defer cancel()
	acted := make(chan error, 1)
	go func() { acted <- act(acting) }()
	hasActed, first, late := false, of.first, time.After(patience)
	for {
		o.mu.Lock()
		s, changed, broken := o.scene(), o.changed, o.broken
		o.mu.Unlock()
		tell(s)
		if broken != "" {
			return s, fmt.Errorf("not true at every moment: %s", broken)
		}
		open := openClaims(first, s)
		if len(open) == 0 {
			first, open = nil, openClaims(append(of.claims, statusUpToDate), s)
		}
		if hasActed && len(open) == 0 {
			return s, nil
		}
		select {
		case <-changed:
		case err := <-acted:
			if err != nil {
				return s, err
			}
			hasActed = true
		case <-ctx.Done():
			return s, context.Cause(ctx)
		case <-late:
			return s, fmt.Errorf("still not true after %s:\n  - %s", patience, strings.Join(open, "\n  - "))
		}
	}
}

// openClaims returns the claims that do not hold in the scene.
func openClaims(claims []claim, s scene) []string {
	var open []string
	for _, c := range claims {
		if !c.holds(s) {
			open = append(open, c.text)
		}
	}
	return open
}
