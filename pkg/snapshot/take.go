// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is the number of objects of one request.
const pageSize = 1000

// parallelKinds is the number of kinds that are read at the same time.
const parallelKinds = 4

// Take reads a cluster. Kinds that may not be read, or do not exist, are in Unread, unless nothing can be said without
// them.
func Take(ctx context.Context, config *rest.Config, by string, now time.Time) (*Snapshot, error) {
	c, server, err := connect(config)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{Taken: now, By: by, Server: server}
	objects, errs := make([][]runtime.Object, len(Kinds)), make([]error, len(Kinds))
	var group sync.WaitGroup
	slots := make(chan struct{}, parallelKinds)
	for i := range Kinds {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			objects[i], errs[i] = readKind(ctx, c, &Kinds[i])
		})
	}
	group.Wait()
	for i := range Kinds {
		k := &Kinds[i]
		switch why := whyUnread(errs[i]); {
		case why == "":
			s.Objects = append(s.Objects, objects[i]...)
		case k.Needed():
			return nil, neededError(k, why)
		default:
			s.Unread = append(s.Unread, Unread{k.qualified(), why, k.Without})
		}
	}
	return s, nil
}

// ReadNames returns the names of the objects of a resource, "podgroups.scheduling.run.ai", in a namespace; "": in all.
// The resource is one of a snapshot.
func ReadNames(ctx context.Context, config *rest.Config, resource, namespace string) ([]string, error) {
	c, _, err := connect(config)
	if err != nil {
		return nil, err
	}
	kind, list := kindOf(resource), &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// connect returns a client of all kinds, and the version of the API server, "" if it does not say.
func connect(config *rest.Config) (c client.WithWatch, server string, err error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, "", err
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1 // the API server has its own limits
	if c, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return nil, "", fmt.Errorf("connecting to the API server: %w", err)
	}
	if d, err := discovery.NewDiscoveryClientForConfig(config); err == nil {
		if v, err := d.ServerVersion(); err == nil {
			server = v.GitVersion
		}
	}
	return c, server, nil
}

// qualified returns the resource with its API group, "podgroups.scheduling.run.ai".
func (k *Kind) qualified() string { return strings.TrimSuffix(k.Resource+"."+k.Group, ".") }

// neededError returns the error for a kind without which nothing can be said.
func neededError(k *Kind, why string) error {
	switch why {
	case WhyForbidden:
		return forbiddenError(k, "list", "nothing can be said")
	case WhyMissing:
		return fmt.Errorf("the API server has no %s: install the CRDs of Muster", k.qualified())
	}
	return fmt.Errorf("reading %s: %s", k.qualified(), why)
}

// forbiddenError returns the error for a right that the user lacks.
func forbiddenError(k *Kind, verb, without string) error {
	return fmt.Errorf("you may not %s %s of the whole cluster, without which %s: ask for a ClusterRole with the verb %s for it", verb, k.qualified(), without, verb)
}

// whyUnread returns Unread.Why for the error of a list.
func whyUnread(err error) string {
	switch {
	case err == nil:
		return ""
	case apierrors.IsForbidden(err):
		return WhyForbidden
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || isUnknownGroup(err):
		return WhyMissing
	}
	if failed := (*url.Error)(nil); errors.As(err, &failed) { // the address is long, and says nothing to people
		return failed.Err.Error()
	}
	return err.Error()
}

// isUnknownGroup reports whether discovery did not find the API group.
func isUnknownGroup(err error) bool {
	var failed *discovery.ErrGroupDiscoveryFailed
	return errors.As(err, &failed)
}

// readKind reads all objects of a kind, stripped, in pages. If the first pages have expired when the last ones are
// read, it begins again without pages.
func readKind(ctx context.Context, c client.Client, k *Kind) ([]runtime.Object, error) {
	var all []runtime.Object
	options := client.ListOptions{Limit: pageSize}
	for {
		list := k.newList()
		err := c.List(ctx, list, &options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			all, options = nil, client.ListOptions{}
			continue
		}
		if err != nil {
			return nil, err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			k.stripObject(item.(client.Object))
		}
		all = append(all, items...)
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}
