// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ client.Client = &API{}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// apiClient is a client of an API: that of users and tests, which the API itself is, or that of a process. It
// implements the part of client.Client that controllers use.
type apiClient struct {
	client.Client // nil: methods that are not implemented panic

	api    *API
	reader client.Reader
	// before is called before every write, also one with dry-run; if it returns an error, the write fails with it. May
	// be nil.
	before func(o client.Object, dryRun bool) error
}

// Get implements client.Reader.
func (c apiClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return c.reader.Get(ctx, key, into, options...)
}

// List implements client.Reader.
func (c apiClient) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	return c.reader.List(ctx, into, options...)
}

// Scheme implements client.Client.
func (c apiClient) Scheme() *runtime.Scheme { return c.api.scheme }

// tableFor returns the table of an object that is about to be written.
func (c apiClient) tableFor(o client.Object, dryRun bool) (*table, error) {
	if c.before != nil {
		if err := c.before(o, dryRun); err != nil {
			return nil, err
		}
	}
	return c.api.tableOf(o)
}

// write calls do for the table of an object, and puts the object that was stored into o.
func (c apiClient) write(o client.Object, dryRun bool, do func(*table) (client.Object, error)) error {
	t, err := c.tableFor(o, dryRun)
	if err != nil {
		return err
	}
	stored, err := do(t)
	if err != nil {
		return err
	}
	return fill(o, stored, t.gvk, false)
}

// Create implements client.Writer. With dry-run, Refuse is asked, and nothing is stored.
func (c apiClient) Create(_ context.Context, o client.Object, options ...client.CreateOption) error {
	applied := &client.CreateOptions{}
	applied.ApplyOptions(options)
	dryRun := len(applied.DryRun) > 0
	return c.write(o, dryRun, func(t *table) (client.Object, error) { return c.api.create(t, o, dryRun) })
}

// Update implements client.Writer.
func (c apiClient) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	return c.put(o, Update)
}

func (c apiClient) put(o client.Object, verb Verb) error {
	return c.write(o, false, func(t *table) (client.Object, error) {
		return c.api.update(t, client.ObjectKeyFromObject(o), verb, func(client.Object) (client.Object, error) {
			return o.DeepCopyObject().(client.Object), nil
		})
	})
}

// Patch implements client.Writer, for merge patches and strategic merge patches.
func (c apiClient) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
	return c.patch(o, p, Update)
}

func (c apiClient) patch(o client.Object, p client.Patch, verb Verb) error {
	return c.write(o, false, func(t *table) (client.Object, error) {
		data, err := p.Data(o)
		if err != nil {
			return nil, err
		}
		return c.api.patch(t, client.ObjectKeyFromObject(o), verb, p.Type(), data)
	})
}

// Delete implements client.Writer.
func (c apiClient) Delete(_ context.Context, o client.Object, options ...client.DeleteOption) error {
	t, err := c.tableFor(o, false)
	if err != nil {
		return err
	}
	d := &client.DeleteOptions{}
	d.ApplyOptions(options)
	return c.api.remove(t, client.ObjectKeyFromObject(o), d)
}

// Status implements client.Client.
func (c apiClient) Status() client.SubResourceWriter { return statusWriter{apiClient: c} }

// statusWriter writes the status of objects.
type statusWriter struct {
	client.SubResourceWriter // nil: methods that are not implemented panic

	apiClient apiClient
}

// Update implements client.SubResourceWriter.
func (s statusWriter) Update(_ context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	return s.apiClient.put(o, UpdateStatus)
}

// Patch implements client.SubResourceWriter.
func (s statusWriter) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.apiClient.patch(o, p, UpdateStatus)
}
