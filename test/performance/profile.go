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

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// newProfiler creates an identity that may read profiles. It is a service account, since the schedulers here have no
// certificate authority for clients.
func newProfiler(ctx context.Context, cp *controlplane.ControlPlane, path string, length time.Duration) (*profiler, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "profiler", Namespace: namespace}}
	if _, err := cp.Client().CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "profiler"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/debug/pprof/*"}}},
	}
	if _, err := cp.Client().RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	rights := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "profiler"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
	}
	if _, err := cp.Client().RbacV1().ClusterRoleBindings().Create(ctx, rights, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	config, err := cp.ServiceAccountConfig(ctx, namespace, account.Name)
	if err != nil {
		return nil, err
	}
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true} // a scheduler signs its own certificate
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &profiler{client: client, path: path, length: length}, os.MkdirAll(filepath.Dir(path), 0o755)
}

// begin fetches the profile of a scheduler that is being started, from when it answers. The returned function waits for
// the end and returns the path of the profile.
func (p *profiler) begin(ctx context.Context, program controlplane.ProcessOptions) (wait func()) {
	return p.beginAt(ctx, "https://"+hostOf(program))
}

// beginAt is begin for a program that serves profiles at an address.
func (p *profiler) beginAt(ctx context.Context, address string) (wait func()) {
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
func (p *profiler) heap(ctx context.Context, program controlplane.ProcessOptions) error {
	path := strings.TrimSuffix(p.path, ".pprof") + ".heap.pprof"
	if err := p.fetch(ctx, "https://"+hostOf(program)+"/debug/pprof/heap?gc=1", path); err != nil {
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
