// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/muster-project/muster/test/wrappers"
)

func TestIsUnanswered(t *testing.T) {
	t.Parallel()
	pods := corev1.Resource("pods")
	tests := map[string]struct {
		err  error
		want bool
	}{
		"connection refused":           {&url.Error{Op: "Post", Err: syscall.ECONNREFUSED}, true},
		"no answer in time":            {fmt.Errorf("client rate limiter: %w", context.DeadlineExceeded), true},
		"the storage does not answer":  {apierrors.NewInternalError(fmt.Errorf("etcdserver: request timed out")), true},
		"the server timed out":         {apierrors.NewTimeoutError("later", 1), true},
		"the server starts or stops":   {apierrors.NewServiceUnavailable("shutting down"), true},
		"refused by a policy":          {apierrors.NewForbidden(pods, "a-0", fmt.Errorf("no")), false},
		"already bound":                {apierrors.NewConflict(pods, "a-0", fmt.Errorf("assigned to node n0")), false},
		"gone":                         {fmt.Errorf("binding: %w", apierrors.NewNotFound(pods, "a-0")), false},
		"too many requests, an answer": {apierrors.NewTooManyRequests("slow down", 1), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := isUnanswered(tc.err); got != tc.want {
				t.Errorf("isUnanswered(%v) = %t, want %t", tc.err, got, tc.want)
			}
		})
	}
}

// The other client has a connection of its own (kubescheduler.NewBindingClient).
func TestMembersAreBoundThroughTheClientForBindings(t *testing.T) {
	t.Parallel()
	var through atomic.Int32
	count := func(context.Context, string) error {
		through.Add(1)
		return nil
	}
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8)).gang("a", 4).pod(wrappers.MakePod("plain", "ml"))
	c.gangs.BindThrough(slowClient{c.client, &cluster{answer: count}})
	c.run().wholeOf("a", 4).eventually("the plain pod bound", func() bool { return len(c.boundOf("plain")) == 1 })
	if n := through.Load(); n != 4 {
		t.Errorf("%d bindings through the client, want those of the four members", n)
	}
}
