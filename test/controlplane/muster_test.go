// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// errorLine matches a line that klog writes with severity error, and stockError the error that every Kubernetes server
// logs when it starts without --allow-metric-labels-manifest.
var (
	errorLine  = regexp.MustCompile(`^E\d{4} `)
	stockError = "The manifest file is empty, ignoring."
)

func TestMusterRunsUnderItsOwnRules(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cp := startPlain(t)
	if err := cp.InstallMuster(ctx); err != nil {
		t.Fatal(err)
	}
	metrics, _, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	// It returns when its webhook is called.
	controller, err := cp.StartMusterController(ctx, ControllerOptions{Args: []string{"--metrics-bind-address=" + metrics}})
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := cp.StartMusterScheduler(ctx, SchedulerOptions{})
	if err != nil {
		t.Fatal(err)
	}

	nodes := newNodes(t, cp, NodeOptions{Count: 1, GPUs: 8})
	schedulePod := func(name string) {
		t.Helper()
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{SchedulerName: "muster-scheduler", Containers: []corev1.Container{{Name: "main", Image: "none"}}},
		}
		if _, err := cp.Client().CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := cp.untilPod(ctx, "default", name, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == nodes[0] }); err != nil {
			t.Fatalf("%v\n%s", err, scheduler.LogTail(20))
		}
	}
	schedulePod("before")
	if err := cp.Restart(ctx, scheduler); err != nil { // kill -9
		t.Fatal(err)
	}
	schedulePod("after")
	for _, address := range []string{"https://" + metrics, strings.TrimSuffix(scheduler.ReadyURL, "/readyz")} {
		checkReaders(t, cp, address)
	}

	for _, p := range []*Process{controller, scheduler} {
		log := p.LogTail(1 << 20)
		if strings.Contains(log, "is forbidden") {
			t.Errorf("%s lacks a right:\n%s", p.Name, log)
		}
		// The log of a cluster without faults has no errors.
		for line := range strings.Lines(log) {
			if errorLine.MatchString(line) && !strings.Contains(line, stockError) {
				t.Errorf("%s logs an error: %s", p.Name, line)
			}
		}
	}
}

// checkReaders fails the test unless a program serves metrics and profiles by HTTPS, and only to those who may get
// these paths.
func checkReaders(t *testing.T, cp *ControlPlane, address string) {
	t.Helper()
	reader, err := cp.MetricsConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := cp.ServiceAccountConfig(t.Context(), MusterNamespace, "muster-controller") // a service account without these rights
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		config  *rest.Config
		answers []int
	}{
		"nobody":         {cp.anonymous(), []int{http.StatusUnauthorized, http.StatusForbidden}},
		"a tenant":       {tenant, []int{http.StatusForbidden}},
		"who may get it": {reader, []int{http.StatusOK}},
	} {
		tc.config.Insecure, tc.config.CAData = true, nil // the programs sign their own certificates
		client, err := rest.HTTPClientFor(tc.config)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/metrics", "/debug/pprof/heap"} {
			response, err := client.Get(address + path)
			if err != nil {
				t.Errorf("%s gets %s: %v", name, address+path, err)
				continue
			}
			response.Body.Close()
			if !slices.Contains(tc.answers, response.StatusCode) {
				t.Errorf("%s gets %s: %s, want %d", name, address+path, response.Status, tc.answers)
			}
		}
	}
	if response, err := probes.Get("http" + strings.TrimPrefix(address, "https") + "/metrics"); err == nil {
		response.Body.Close()
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("by plain HTTP %s answers %s", address, response.Status)
		}
	}
}

// muster-scheduler writes its configuration without a cluster, without a kubeconfig and beside a running scheduler,
// whose port is taken, and removes the file from which the stock scheduler reads the built-in profile.
func TestMusterSchedulerWritesItsConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := WriteKubeconfig(&rest.Config{Host: "https://127.0.0.1:1"}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	running, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { running.Close() })
	profile := []string{"schedulerName: muster-scheduler", "bindParallelism: 128", "kind: NodeAffinityArgs"}
	for name, tc := range map[string]struct {
		args  []string
		lines []string
	}{
		"as documented":                            {lines: append(profile, `kubeconfig: ""`, "leaderElect: true")},
		"with a kubeconfig":                        {args: []string{"--kubeconfig=" + kubeconfig}, lines: append(profile, "kubeconfig: "+kubeconfig)},
		"while another process serves on the port": {args: []string{"--secure-port=" + strings.TrimPrefix(running.Addr().String(), "127.0.0.1:")}, lines: profile},
		"without leader election":                  {args: []string{"--leader-elect=false"}, lines: append(profile, "leaderElect: false")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temp, file := t.TempDir(), filepath.Join(t.TempDir(), "config.yaml")
			cmd := exec.CommandContext(t.Context(), filepath.Join(repository(), "bin", "muster-scheduler"), append(tc.args, "--write-config-to="+file)...)
			cmd.Env = []string{"TMPDIR=" + temp, "HOME=" + temp}
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			config, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range tc.lines {
				if !strings.Contains(string(config), line) {
					t.Errorf("%q is not in\n%s", line, config)
				}
			}
			left, err := os.ReadDir(temp)
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
