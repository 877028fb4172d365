// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

// offlineClaims is the API server of an Offline: it has its ResourceClaims, because the devices of a plan are written
// into them, and refuses all other requests.
type offlineClaims struct {
	changes chan watch.Event
	watcher *watch.ProxyWatcher // of changes, until the informer stops

	mu      sync.Mutex
	claims  map[types.NamespacedName]*resourcev1.ResourceClaim // guarded by mu
	version int64                                              // guarded by mu: the highest one
}

// newOfflineClaims returns the claims among the objects. Those without a version get one.
func newOfflineClaims(objects []runtime.Object) (c *offlineClaims, items []runtime.Object) {
	changes := make(chan watch.Event)
	c = &offlineClaims{changes: changes, watcher: watch.NewProxyWatcher(changes), claims: map[types.NamespacedName]*resourcev1.ResourceClaim{}}
	for _, object := range objects {
		claim := object.(*resourcev1.ResourceClaim)
		version, err := strconv.ParseInt(claim.ResourceVersion, 10, 64)
		if err != nil {
			claim = claim.DeepCopy()
			claim.ResourceVersion, version = "1", 1
		}
		c.version = max(c.version, version)
		c.claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = claim
		items = append(items, claim)
	}
	return c, items
}

// set adds or replaces a claim, with a new version, and returns it.
func (c *offlineClaims) set(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	c.mu.Lock()
	name := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
	change := watch.Event{Type: watch.Added}
	if _, has := c.claims[name]; has {
		change.Type = watch.Modified
	}
	c.version++
	claim = claim.DeepCopy()
	claim.ResourceVersion = strconv.FormatInt(c.version, 10)
	c.claims[name] = claim
	c.mu.Unlock()
	change.Object = claim.DeepCopy()
	select {
	case c.changes <- change:
	case <-c.watcher.StopChan(): // nobody reads it any more
	}
	return claim
}

// RoundTrip implements http.RoundTripper.
func (c *offlineClaims) RoundTrip(r *http.Request) (*http.Response, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // apis/resource.k8s.io/v1/namespaces/NS/resourceclaims/NAME/status
	if len(parts) < 7 || parts[1] != resourcev1.GroupName || parts[5] != "resourceclaims" {
		return nil, fmt.Errorf("%s %s: there is no API server", r.Method, r.URL.Path)
	}
	c.mu.Lock()
	claim := c.claims[types.NamespacedName{Namespace: parts[4], Name: parts[6]}]
	c.mu.Unlock()
	switch {
	case claim == nil:
		status := apierrors.NewNotFound(resourcev1.Resource("resourceclaims"), parts[6]).Status()
		return respond(r, http.StatusNotFound, &status)
	case r.Method == http.MethodPut:
		changed := &resourcev1.ResourceClaim{}
		if err := json.NewDecoder(r.Body).Decode(changed); err != nil {
			return nil, fmt.Errorf("reading a ResourceClaim that is written: %w", err)
		}
		claim = c.set(changed)
	case r.Method != http.MethodGet:
		return nil, fmt.Errorf("%s %s: there is no API server", r.Method, r.URL.Path)
	}
	claim = claim.DeepCopy()
	claim.SetGroupVersionKind(resourcev1.SchemeGroupVersion.WithKind("ResourceClaim"))
	return respond(r, http.StatusOK, claim)
}

func respond(r *http.Request, code int, object any) (*http.Response, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// claimSeenLimit bounds the wait until the plugins know a claim.
const claimSeenLimit = 5 * time.Second

// SetClaim adds a ResourceClaim, or replaces that of its name, and waits until the plugins know it.
func (o *Offline) SetClaim(ctx context.Context, claim *resourcev1.ResourceClaim) error {
	stored := o.claims.set(claim)
	for _, profile := range o.sched.Profiles { // all of them share the manager
		dra := profile.SharedDRAManager()
		if dra == nil {
			return nil
		}
		err := wait.PollUntilContextTimeout(ctx, 100*time.Microsecond, claimSeenLimit, true, func(context.Context) (bool, error) {
			known, err := dra.ResourceClaims().Get(claim.Namespace, claim.Name)
			return err == nil && known.ResourceVersion == stored.ResourceVersion, nil
		})
		if err != nil {
			return fmt.Errorf("adding ResourceClaim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
		return nil
	}
	return nil
}
