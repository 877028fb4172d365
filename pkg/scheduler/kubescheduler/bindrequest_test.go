// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/muster-project/muster/test/wrappers"
)

// Bindings do not share a connection with the informers, but one with each other.
func TestBindingsHaveAConnectionOfTheirOwn(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	from := map[string]map[string]bool{} // by method: the ends of connections
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if from[r.Method] == nil {
			from[r.Method] = map[string]bool{}
		}
		from[r.Method][r.RemoteAddr] = true
		if r.ProtoMajor != 2 {
			t.Errorf("%s by %s", r.Method, r.Proto)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}}
	informers, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	bindings, err := NewBindingClient(config)
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t)
	for range 3 {
		if _, err := informers.CoreV1().Pods("ml").Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := Bind(t.Context(), c.f, bindings, wrappers.MakePod("p", "ml").Obj(), "n", nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(from["GET"]) != 1 || len(from["POST"]) != 1 {
		t.Fatalf("connections by method: %v, want one each", from)
	}
	for end := range from["POST"] {
		if from["GET"][end] {
			t.Error("bindings go over the connection of the informers")
		}
	}
	if config.Dial != nil {
		t.Error("the configuration was changed")
	}
}
