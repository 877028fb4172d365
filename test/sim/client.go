// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

var _ client.Client = &API{}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// Create implements client.Writer. With dry-run, Refuse is asked, and nothing is stored.
func (a *API) Create(_ context.Context, o client.Object, options ...client.CreateOption) error {
	t, err := a.tableOf(o)
	if err != nil {
		return err
	}
	made, err := a.create(t, o, isDryRun(options))
	if err != nil {
		return err
	}
	return fill(o, made, t.gvk, false)
}

func isDryRun(options []client.CreateOption) bool {
	o := &client.CreateOptions{}
	o.ApplyOptions(options)
	return len(o.DryRun) > 0
}

// Update implements client.Writer.
func (a *API) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	return a.put(o, Update)
}

func (a *API) put(o client.Object, verb Verb) error {
	t, err := a.tableOf(o)
	if err != nil {
		return err
	}
	written, err := a.update(t, client.ObjectKeyFromObject(o), verb, func(client.Object) (client.Object, error) {
		return o.DeepCopyObject().(client.Object), nil
	})
	if err != nil {
		return err
	}
	return fill(o, written, t.gvk, false)
}

// Patch implements client.Writer, for merge patches and strategic merge patches.
func (a *API) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
	return a.apply(o, p, Update)
}

func (a *API) apply(o client.Object, p client.Patch, verb Verb) error {
	t, err := a.tableOf(o)
	if err != nil {
		return err
	}
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	written, err := a.patch(t, client.ObjectKeyFromObject(o), verb, p.Type(), data)
	if err != nil {
		return err
	}
	return fill(o, written, t.gvk, false)
}

// Delete implements client.Writer.
func (a *API) Delete(_ context.Context, o client.Object, options ...client.DeleteOption) error {
	t, err := a.tableOf(o)
	if err != nil {
		return err
	}
	d := &client.DeleteOptions{}
	d.ApplyOptions(options)
	return a.remove(t, client.ObjectKeyFromObject(o), d)
}

// DeleteAllOf implements client.Writer.
func (a *API) DeleteAllOf(_ context.Context, o client.Object, options ...client.DeleteAllOfOption) error {
	t, err := a.tableOf(o)
	if err != nil {
		return err
	}
	d := &client.DeleteAllOfOptions{}
	d.ApplyOptions(options)
	a.mu.Lock()
	objects := t.ordered
	a.mu.Unlock()
	for _, there := range objects {
		if d.Namespace != "" && there.GetNamespace() != d.Namespace || d.LabelSelector != nil && !d.LabelSelector.Matches(labels.Set(there.GetLabels())) {
			continue
		}
		if err := client.IgnoreNotFound(a.remove(t, client.ObjectKeyFromObject(there), &d.DeleteOptions)); err != nil {
			return err
		}
	}
	return nil
}

// Apply implements client.Writer. It is not supported, because no controller uses it.
func (a *API) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return fmt.Errorf("server-side apply is not simulated")
}

// Status implements client.Client.
func (a *API) Status() client.SubResourceWriter { return subresource{a, "status"} }

// SubResource implements client.Client: the status of kinds that have one, and the eviction of pods.
func (a *API) SubResource(name string) client.SubResourceClient { return subresource{a, name} }

// Scheme implements client.Client.
func (a *API) Scheme() *runtime.Scheme { return a.scheme }

// RESTMapper implements client.Client.
func (a *API) RESTMapper() meta.RESTMapper { return a.mapper }

// GroupVersionKindFor implements client.Client.
func (a *API) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(o, a.scheme)
}

// IsObjectNamespaced implements client.Client.
func (a *API) IsObjectNamespaced(o runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(o, a.scheme, a.mapper)
}

// subresource is a subresource of an API's objects.
type subresource struct {
	api  *API
	name string
}

// Get implements client.SubResourceReader.
func (s subresource) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return fmt.Errorf("subresource %s cannot be read here", s.name)
}

// Create implements client.SubResourceWriter: an eviction. PodDisruptionBudgets are not checked.
func (s subresource) Create(ctx context.Context, o, _ client.Object, _ ...client.SubResourceCreateOption) error {
	if _, isPod := o.(*corev1.Pod); !isPod || s.name != "eviction" {
		return fmt.Errorf("subresource %s of %T cannot be created here", s.name, o)
	}
	return s.api.Delete(ctx, o)
}

// Update implements client.SubResourceWriter.
func (s subresource) Update(_ context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	if s.name != "status" {
		return fmt.Errorf("subresource %s cannot be written here", s.name)
	}
	return s.api.put(o, UpdateStatus)
}

// Patch implements client.SubResourceWriter.
func (s subresource) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	if s.name != "status" {
		return fmt.Errorf("subresource %s cannot be written here", s.name)
	}
	return s.api.apply(o, p, UpdateStatus)
}

// Apply implements client.SubResourceWriter. It is not supported, because no controller uses it.
func (s subresource) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return fmt.Errorf("server-side apply is not simulated")
}
