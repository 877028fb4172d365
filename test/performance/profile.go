// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/muster-project/muster/test/controlplane"
)

// profiler fetches profiles from schedulers.
type profiler struct {
	client *http.Client
	path   string
	length time.Duration
}

// profiler returns one for the scheduler, nil if none is wanted or the contestant is no program.
func (cl *cluster) profiler(ctx context.Context) (*profiler, error) {
	if cl.o.profiles == "" || cl.c.program == nil {
		return nil, nil
	}
	return newProfiler(ctx, cl.cp, filepath.Join(cl.o.profiles, cl.c.name+".pprof"), cl.o.profileFor)
}

// profilerRights are those of an identity that may read profiles and metrics. It is a service account, since the schedulers here have
// no certificate authority for clients.
const profilerRights = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: profiler, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: profiler}
rules:
- {nonResourceURLs: ["/debug/pprof/*", /metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: profiler}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: profiler}
subjects:
- {kind: ServiceAccount, namespace: default, name: profiler}
`

// profilerClient returns a client with profilerRights.
func profilerClient(ctx context.Context, cp *controlplane.ControlPlane) (*http.Client, error) {
	if err := cp.ApplyYAML(ctx, profilerRights); err != nil {
		return nil, err
	}
	config, err := cp.ServiceAccountConfig(ctx, namespace, "profiler")
	if err != nil {
		return nil, err
	}
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true} // a scheduler signs its own certificate
	return rest.HTTPClientFor(config)
}

func newProfiler(ctx context.Context, cp *controlplane.ControlPlane, path string, length time.Duration) (*profiler, error) {
	client, err := profilerClient(ctx, cp)
	if err != nil {
		return nil, err
	}
	return &profiler{client: client, path: path, length: length}, os.MkdirAll(filepath.Dir(path), 0o755)
}

// begin fetches the profile of a program that is being started, from when it answers at the address. The returned function
// waits for the end.
func (p *profiler) begin(ctx context.Context, address string) (wait func()) {
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, p.length+30*time.Second)
		defer cancel()
		done <- p.fetch(ctx, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", address, int(p.length.Seconds())), p.path)
	}()
	return func() {
		if err := <-done; err != nil {
			fmt.Fprintln(os.Stderr, "fetching a CPU profile:", err)
			return
		}
		fmt.Fprintln(os.Stderr, "CPU profile:", p.path)
	}
}

// heap fetches the heap profile of a scheduler after a garbage collection.
func (p *profiler) heap(ctx context.Context, host string) error {
	path := strings.TrimSuffix(p.path, ".pprof") + ".heap.pprof"
	if err := p.fetch(ctx, "https://"+host+"/debug/pprof/heap?gc=1", path); err != nil {
		return fmt.Errorf("fetching a heap profile: %w", err)
	}
	fmt.Fprintln(os.Stderr, "heap profile:", path)
	return nil
}

// hostOf returns where a scheduler serves.
func hostOf(program controlplane.ProcessOptions) string {
	for _, arg := range program.Args {
		if port, ok := strings.CutPrefix(arg, "--secure-port="); ok {
			return "127.0.0.1:" + port
		}
	}
	return ""
}

func (p *profiler) fetch(ctx context.Context, url, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := p.client.Do(request)
	for err != nil {
		if ctx.Err() != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond) // it does not answer yet, and there is no event when it does
		response, err = p.client.Do(request)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := file.ReadFrom(response.Body); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
