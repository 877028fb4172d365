// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
)

// PodGroups holds PodGroups of all namespaces. All methods are safe for concurrent use.
type PodGroups struct {
	collection
	updates    int                      // guarded by mu, as all fields below
	failures   []error                  // of the next updates
	onUpdate   func(*v2alpha2.PodGroup) // may be nil
	topologies *Topologies              // nil: there is no CRD of Topologies
}

// NewPodGroups returns a server without objects.
func NewPodGroups() *PodGroups {
	return &PodGroups{collection: newCollection(v2alpha2.SchemeGroupVersion.WithKind("PodGroup"))}
}

// Serve answers HTTP requests until the test ends, and returns the address. Clients have to stop before it does:
// register their cleanup later.
func (p *PodGroups) Serve(t testing.TB) (url string) {
	t.Helper()
	server := httptest.NewServer(p)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// Put creates a PodGroup, or replaces all but the status of the one with the same UID.
func (p *PodGroups) Put(group *v2alpha2.PodGroup) {
	p.mu.Lock()
	defer p.mu.Unlock()
	group = group.DeepCopy()
	kind := watch.Added
	if old := p.stored(keyOf(group)); old != nil {
		kind = watch.Modified
		if old.UID == group.UID {
			group.Status = old.Status
		}
	}
	p.record(kind, group)
}

// Get returns a copy of a PodGroup, nil if there is none.
func (p *PodGroups) Get(key types.NamespacedName) *v2alpha2.PodGroup {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stored(key).DeepCopy()
}

// stored returns a PodGroup, nil if there is none. The caller holds mu, and must not modify it.
func (p *PodGroups) stored(key types.NamespacedName) *v2alpha2.PodGroup {
	group, _ := p.objects[key].(*v2alpha2.PodGroup)
	return group
}

// Delete removes a PodGroup. It is not an error if there is none.
func (p *PodGroups) Delete(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.stored(key); old != nil {
		p.record(watch.Deleted, old.DeepCopy())
	}
}

// Updates returns the number of status updates that have succeeded.
func (p *PodGroups) Updates() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.updates
}

// FailUpdates makes the next status updates fail, one with each error.
func (p *PodGroups) FailUpdates(errs ...error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = errs
}

// OnUpdate registers a function that is called with every PodGroup whose status was updated.
func (p *PodGroups) OnUpdate(f func(*v2alpha2.PodGroup)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onUpdate = f
}

// UpdateStatus writes the status. It fails with a conflict unless the resource version and the UID are the latest.
func (p *PodGroups) UpdateStatus(_ context.Context, group *v2alpha2.PodGroup) (*v2alpha2.PodGroup, error) {
	p.mu.Lock()
	next, err := p.updateStatus(group)
	onUpdate := p.onUpdate
	p.mu.Unlock()
	if err == nil && onUpdate != nil {
		onUpdate(next.DeepCopy())
	}
	return next, err
}

func (p *PodGroups) updateStatus(group *v2alpha2.PodGroup) (*v2alpha2.PodGroup, error) {
	if len(p.failures) > 0 {
		err := p.failures[0]
		p.failures = p.failures[1:]
		return nil, err
	}
	old := p.stored(keyOf(group))
	switch {
	case old == nil:
		return nil, apierrors.NewNotFound(v2alpha2.Resource("podgroups"), group.Name)
	case old.ResourceVersion != group.ResourceVersion || old.UID != group.UID:
		return nil, apierrors.NewConflict(v2alpha2.Resource("podgroups"), group.Name, errors.New("the object has been modified"))
	}
	next := old.DeepCopy()
	next.Status = *group.Status.DeepCopy()
	p.record(watch.Modified, next)
	p.updates++
	return next.DeepCopy(), nil
}

// ServeHTTP implements http.Handler for GET and watch of all PodGroups, GET of one, and PUT of a status.
func (p *PodGroups) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/apis/"+v2alpha2.SchemeGroupVersion.String()+"/"), "/")
	query := r.URL.Query()
	p.mu.Lock()
	topologies := p.topologies
	p.mu.Unlock()
	switch {
	case query.Get("sendInitialEvents") != "": // the client falls back to a list
		answerError(w, apierrors.NewInvalid(v2alpha2.SchemeGroupVersion.WithKind("PodGroup").GroupKind(), "", nil))
	case strings.HasPrefix(r.URL.Path, "/apis/"+topologyv1alpha1.GroupName+"/") && topologies == nil: // as in a cluster without their CRD
		http.NotFound(w, r)
	case strings.HasPrefix(r.URL.Path, "/apis/"+topologyv1alpha1.GroupName+"/"):
		topologies.ServeHTTP(w, r)
	case r.Method == http.MethodGet && len(path) == 1:
		p.collection.ServeHTTP(w, r)
	case r.Method == http.MethodPut:
		var group v2alpha2.PodGroup
		if err := json.NewDecoder(r.Body).Decode(&group); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		next, err := p.UpdateStatus(r.Context(), &group)
		if err != nil {
			answerError(w, err)
			return
		}
		answer(w, next)
	case r.Method == http.MethodGet && len(path) == 4: // namespaces/NAMESPACE/podgroups/NAME
		group := p.Get(types.NamespacedName{Namespace: path[1], Name: path[3]})
		if group == nil {
			answerError(w, apierrors.NewNotFound(v2alpha2.Resource("podgroups"), path[3]))
			return
		}
		answer(w, group)
	default:
		http.Error(w, fmt.Sprintf("%s %s is not served here", r.Method, r.URL.Path), http.StatusNotImplemented)
	}
}

func answer(w http.ResponseWriter, object any) {
	_ = json.NewEncoder(w).Encode(object) // fails only if the client has gone
}

func answerError(w http.ResponseWriter, err error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s := status.Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.WriteHeader(int(s.Code))
	answer(w, s)
}
