// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/muster-project/muster/test/controlplane"
)

// proxy is a proxy between muster-scheduler and the API server. It delays the bindings of some pods, or does not answer
// them, as a network, a load balancer or an admission webhook may do.
type proxy struct {
	api http.Handler // the API server

	mu    sync.Mutex
	fates map[string]*fate // guarded by mu; by pod; bindings of other pods are forwarded
}

// fate determines how the bindings of a pod are handled.
type fate struct {
	// do is called with every binding, attempt counting from 1. The scheduler gets no answer before do returns. The
	// request's context ends when the scheduler has given up.
	do       func(w http.ResponseWriter, r *http.Request, attempt int)
	attempts int           // guarded by the proxy's mu
	arrived  chan struct{} // gets one element for every binding that arrives
}

// startBehindProxy runs muster-scheduler with a proxy before the API server until the test is over.
func (c *cluster) startBehindProxy(args map[string]any) *proxy {
	c.t.Helper()
	direct, err := cp.ServiceAccountConfig(c.ctx, controlplane.MusterNamespace, "muster-scheduler")
	c.must(err, "making a client configuration")
	api, err := url.Parse(direct.Host)
	c.must(err, "reading the API server's address")
	transport, err := rest.TransportFor(&rest.Config{Host: direct.Host, TLSClientConfig: direct.TLSClientConfig})
	c.must(err, "making a transport")
	reverse := httputil.NewSingleHostReverseProxy(api)
	reverse.Transport, reverse.FlushInterval = transport, -1 // watches
	// While the API server is away there is no answer, not one of a proxy.
	reverse.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	reverse.ErrorLog = log.New(io.Discard, "", 0)
	p := &proxy{api: reverse, fates: map[string]*fate{}}

	server := httptest.NewUnstartedServer(p)
	server.EnableHTTP2 = true
	server.StartTLS()
	c.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	direct.Host = server.URL
	direct.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	kubeconfig := filepath.Join(c.t.TempDir(), "kubeconfig")
	c.must(controlplane.WriteKubeconfig(direct, kubeconfig), "writing a kubeconfig")
	c.scheduler, err = cp.StartMusterScheduler(c.ctx, controlplane.SchedulerOptions{
		Config: schedulerConfig(c.t, settings{args: args}), Kubeconfig: kubeconfig,
	})
	c.must(err, "starting muster-scheduler")
	// Registered last and therefore run first: the proxy cannot stop while its client waits for answers.
	c.t.Cleanup(c.scheduler.Kill)
	return p
}

// decide sets how the bindings of a pod are handled, and returns the channel that gets an element for each of them.
func (p *proxy) decide(pod string, do func(w http.ResponseWriter, r *http.Request, attempt int)) (arrived <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &fate{do: do, arrived: make(chan struct{}, 1000)}
	p.fates[pod] = f
	return f.arrived
}

var bindingPath = regexp.MustCompile(`/pods/([^/]+)/binding$`)

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var f *fate
	attempt := 0
	if found := bindingPath.FindStringSubmatch(r.URL.Path); found != nil {
		p.mu.Lock()
		if f = p.fates[found[1]]; f != nil {
			f.attempts++
			attempt = f.attempts
		}
		p.mu.Unlock()
	}
	if f == nil {
		p.api.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body) // the request is complete; only the answer is delayed
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.arrived <- struct{}{}
	f.do(w, r, attempt)
}

// carryOut sends the request to the API server, even if the client no longer waits for the answer, which it returns.
func (p *proxy) carryOut(r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	p.api.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
	return answer
}

// untilArrived waits until this number of bindings has arrived.
func (c *cluster) untilArrived(arrived <-chan struct{}, n int, within time.Duration) {
	c.t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	for i := range n {
		select {
		case <-arrived:
		case <-timer.C:
			c.must(context.DeadlineExceeded, fmt.Sprintf("waiting for %d bindings to come, of which %d came", n, i))
		}
	}
}

// bindTimeout is how long muster-scheduler waits for the answer to a binding.
const bindTimeout = 30 * time.Second
