// SPDX-License-Identifier: Apache-2.0

//go:build long

package workload

import (
	"encoding/pem"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/rounds"
)

// muster-controller with delayed watches, each kind by another time of up to some seconds, so that its caches are stale
// and inconsistent: no index ever has two pods, no wanted object is deleted, and in the end the state is correct. At
// times another replica takes over, whose watches have other delays.
func TestCachesThatAreBehind(t *testing.T) {
	n := rounds.Number()
	w := newWorldFor(t, 4, time.Duration(n)*2*time.Minute+5*time.Minute)
	late := w.lateController()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 5))
	began := time.Now()
	w.live(n, 3, random, func() {
		if random.IntN(3) == 0 {
			<-time.After(time.Duration(random.Int64N(int64(5 * time.Second)))) // the instant of the change
			w.must(cp.Restart(w.ctx, late), "starting muster-controller")
		}
	})
	t.Logf("%d rounds took %s, seed %d", n, time.Since(began).Round(time.Second), seed)
}

// lateController runs muster-controller with every watch delayed.
func (w *world) lateController() *controlplane.Process {
	return w.controllerBehind("muster-controller-late", func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && isWatch(request) {
				response.Body = holdBack(response.Body, time.Duration(rand.Int64N(int64(2500*time.Millisecond))))
			}
			return response, err
		})
	})
}

// roundTrip is a http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func isWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// controllerBehind runs muster-controller behind a proxy, whose way to the API server is wrapped, instead of the one of
// the package, which is back when the test is over.
func (w *world) controllerBehind(name string, wrap func(http.RoundTripper) http.RoundTripper) *controlplane.Process {
	w.t.Helper()
	config, err := cp.ServiceAccountConfig(w.ctx, controlplane.MusterNamespace, "muster-controller")
	w.must(err, "making a configuration for muster-controller")
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	w.must(err, "making a transport to the API server")
	server, err := url.Parse(config.Host)
	w.must(err, "reading the API server's address")
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(server) },
		Transport:     wrap(transport),
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // a muster-controller that is killed ends its watches
	})
	config.Host = proxy.URL // with TLS, because a client does not send its token without it
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})
	path := filepath.Join(w.t.TempDir(), "kubeconfig")
	w.must(controlplane.WriteKubeconfig(config, path), "writing a kubeconfig")

	controller.Kill()
	behind, err := cp.StartMusterController(w.ctx, controlplane.ControllerOptions{Name: name, Args: []string{"--kubeconfig=" + path}})
	w.must(err, "starting muster-controller behind the proxy")
	usual := controller
	controller = behind
	w.t.Cleanup(func() { // the world is closed after this
		behind.Kill()
		proxy.CloseClientConnections()
		proxy.Close()
		controller = usual
		var err error
		if controller, err = cp.StartMusterController(w.ctx, controlplane.ControllerOptions{
			Name: "muster-controller-again", Args: controllerArgs}); err != nil {
			w.t.Errorf("starting the usual muster-controller: %v", err)
		}
	})
	return behind
}

// holdBack returns a body whose data is delayed by that time, in the same order.
func holdBack(body io.ReadCloser, delay time.Duration) io.ReadCloser {
	type chunk struct {
		data []byte
		due  time.Time
	}
	const plenty = 100_000 // of chunks: the API server is not to wait for us
	chunks := make(chan chunk, plenty)
	out, in := io.Pipe()
	go func() {
		defer close(chunks)
		for {
			data := make([]byte, 16<<10)
			n, err := body.Read(data)
			if n > 0 {
				chunks <- chunk{data[:n], time.Now().Add(delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	go func() {
		for c := range chunks {
			<-time.After(time.Until(c.due)) // this is the delay
			if _, err := in.Write(c.data); err != nil {
				body.Close() // the reader is gone
			}
		}
		in.Close()
	}()
	return heldBack{out, body}
}

// heldBack closes both ends.
type heldBack struct {
	*io.PipeReader
	source io.Closer
}

func (h heldBack) Close() error {
	h.PipeReader.Close()
	return h.source.Close()
}
