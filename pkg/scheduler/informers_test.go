// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"

	"github.com/muster-project/muster/pkg/scheduler/report"
)

func TestWaitForAPIServer(t *testing.T) {
	const away = 0 // the connection is closed without an answer
	for name, tc := range map[string]struct {
		answers []int // HTTP status codes, the last one for ever
		want    int32 // requests
	}{
		"a server that is ready is asked once":                  {[]int{200}, 1},
		"one that is away is waited for, however long it takes": {[]int{away, away, away, away, away, away, 200}, 7},
		"as is one that is not ready yet":                       {[]int{away, 500, 500, 200}, 4},
		"but not if it says so all the time":                    {[]int{500}, 4},
		"one that refuses the request answers":                  {[]int{403}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/readyz" {
					t.Errorf("request of %s", r.URL.Path)
				}
				n := int(requests.Add(1))
				code := tc.answers[min(n, len(tc.answers))-1]
				if code == away {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(code)
			}))
			defer server.Close()
			client := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL, QPS: -1})
			waitForAPIServer(context.Background(), client.Discovery().RESTClient(), time.Millisecond, 4*time.Millisecond)
			if got := requests.Load(); got != tc.want {
				t.Errorf("%d requests, want %d", got, tc.want)
			}
		})
	}
}

// TestWaitForGate: the scheduler learns what the API server does not serve although that does not answer at first; its
// informers would wait for ever otherwise.
func TestWaitForGate(t *testing.T) {
	t.Parallel()
	const none, rules = featuregate.Feature(""), features.DRADeviceTaintRules
	forbidden := fmt.Errorf("reading: %w", apierrors.NewForbidden(schema.GroupResource{}, "", nil))
	for name, tc := range map[string]struct {
		answers []error // the last one for ever
		gate    featuregate.Feature
		want    featuregate.Feature
		asked   int
	}{
		"a server that answers is asked once":             {[]error{nil}, rules, rules, 1},
		"as is one that serves all":                       {[]error{nil}, none, none, 1},
		"one that does not answer is asked again":         {[]error{io.EOF, io.EOF, io.EOF, io.EOF, io.EOF, nil}, rules, rules, 6},
		"as is one that has not read its own roles yet":   {[]error{forbidden, forbidden, nil}, rules, rules, 3},
		"one that refuses all the time is taken as newer": {[]error{io.EOF, forbidden}, rules, none, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			got := waitForGate(t.Context(), func() (featuregate.Feature, error) {
				asked++
				if err := tc.answers[min(asked, len(tc.answers))-1]; err != nil {
					return "", err
				}
				return tc.gate, nil
			}, time.Millisecond, 4*time.Millisecond)
			if got != tc.want || asked != tc.asked {
				t.Errorf("gate %q after %d questions, want %q after %d", got, asked, tc.want, tc.asked)
			}
		})
	}
}

// started records whether the informers were started.
type started struct {
	informers.SharedInformerFactory
	began chan struct{}
}

func (s started) Start(<-chan struct{}) { close(s.began) }

func TestInformersStartWhenTheAPIServerAnswers(t *testing.T) {
	answers := make(chan struct{})
	f := lateInformers{SharedInformerFactory: started{began: make(chan struct{})}, answers: answers}
	began := f.SharedInformerFactory.(started).began
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Start(t.Context().Done())
	}()
	select {
	case <-began:
		t.Error("started before the API server answers")
	case <-time.After(20 * time.Millisecond):
	}
	close(answers)
	<-began
	<-done
}

func TestWaitForSchema(t *testing.T) {
	foreign := fmt.Errorf("%w: it lacks spec.minSubGroup", report.ErrForeignSchema)
	unread := fmt.Errorf("no answer")
	for name, tc := range map[string]struct {
		answers []error // the last one for ever
		want    int     // calls
	}{
		"a schema that fits is asked for once":                  {answers: []error{nil}, want: 1},
		"a foreign one is waited for, however long it takes":    {answers: []error{foreign, foreign, foreign, foreign, foreign, foreign, nil}, want: 7},
		"one that cannot be read is taken to fit after a while": {answers: []error{unread}, want: 4},
		"but not if it was read and is foreign":                 {answers: []error{unread, unread, foreign, unread, unread, foreign, nil}, want: 7},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			waitForSchema(context.Background(), func(context.Context) error {
				calls++
				return tc.answers[min(calls, len(tc.answers))-1]
			}, time.Millisecond, 4*time.Millisecond)
			if calls != tc.want {
				t.Errorf("asked %d times, want %d", calls, tc.want)
			}
		})
	}
}
