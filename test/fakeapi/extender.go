// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// Extender is an HTTP extender. Its verbs are the paths of its requests.
type Extender struct {
	// Answer returns the answer to a request: an object to be encoded, a string to be sent as it is, or the number of
	// an HTTP status.
	Answer func(verb string, pod *corev1.Pod, nodes []string) any

	mu    sync.Mutex
	asked []ExtenderRequest
}

// ExtenderRequest is a request to an Extender.
type ExtenderRequest struct {
	Verb, Pod string
	Nodes     []string // in the order of the request
	Whole     bool     // it contained whole nodes
}

// Serve answers requests until the test ends, and returns the address. Answer must not block by then: what releases it
// is to be registered later.
func (e *Extender) Serve(t testing.TB) (url string) {
	t.Helper()
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return server.URL
}

// Asked returns the requests since the last call.
func (e *Extender) Asked() []ExtenderRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	asked := e.asked
	e.asked = nil
	return asked
}

// ServeHTTP implements http.Handler.
func (e *Extender) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var args extenderv1.ExtenderArgs
	if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	request := ExtenderRequest{Verb: strings.TrimPrefix(r.URL.Path, "/"), Pod: args.Pod.Name, Whole: args.Nodes != nil}
	switch {
	case args.NodeNames != nil:
		request.Nodes = *args.NodeNames
	case args.Nodes != nil:
		for _, node := range args.Nodes.Items {
			request.Nodes = append(request.Nodes, node.Name)
		}
	}
	e.mu.Lock()
	e.asked = append(e.asked, request)
	e.mu.Unlock()
	switch answer := e.Answer(request.Verb, args.Pod, slices.Clone(request.Nodes)).(type) {
	case int:
		w.WriteHeader(answer)
	case string:
		_, _ = io.WriteString(w, answer) // the client may be gone
	default:
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// Accepted is the answer of a filter that knows nodes by their names. why returns the reason to refuse a node, "" if it
// is accepted.
func Accepted(nodes []string, why func(node string) string) extenderv1.ExtenderFilterResult {
	result := extenderv1.ExtenderFilterResult{NodeNames: &[]string{}, FailedNodes: extenderv1.FailedNodesMap{}}
	for _, node := range nodes {
		if reason := why(node); reason != "" {
			result.FailedNodes[node] = reason
		} else {
			*result.NodeNames = append(*result.NodeNames, node)
		}
	}
	return result
}
