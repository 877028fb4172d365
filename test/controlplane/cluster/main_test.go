// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/procfs"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/muster-project/muster/test/controlplane"
)

// The cluster is held by a process of this binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "hold" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestClusterComesUpAndGoesDown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	if err := run(t.Context(), []string{"up", "-dir", dir, "-nodes", "3", "-gpus", "4"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = down(context.Background(), dir) })

	content, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	processes, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, p := range processes {
		stat, err := p.Stat()
		if err != nil || strconv.Itoa(stat.PPID) != string(content) {
			continue
		}
		program, err := p.Executable()
		if err != nil {
			t.Error(err)
		}
		got[filepath.Base(program)] = true
	}
	want := map[string]bool{"etcd": true, "kube-apiserver": true, "kube-controller-manager": true,
		"muster-controller": true, "muster-scheduler": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("running processes differ (-want +got):\n%s", diff)
	}

	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	gpus := 0
	for _, node := range nodes.Items {
		quantity := node.Status.Allocatable[controlplane.GPUResource]
		gpus += int(quantity.Value())
		for _, taint := range node.Spec.Taints {
			if taint.Effect == corev1.TaintEffectNoSchedule {
				t.Errorf("node %s has taint %s", node.Name, taint.Key)
			}
		}
	}
	if len(nodes.Items) != 3 || gpus != 12 {
		t.Errorf("want 3 nodes with 12 GPUs, got %d with %d", len(nodes.Items), gpus)
	}

	if err := run(t.Context(), []string{"up", "-dir", dir}); err == nil {
		t.Error("want an error for a second cluster in the same place")
	}
	for range 2 { // down succeeds if no cluster runs
		if err := run(t.Context(), []string{"down", "-dir", dir}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: want it gone, got %v", dir, err)
	}
}

func TestDownLeavesForeignDirectoriesAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := run(context.Background(), []string{"down", "-dir", dir}); err == nil {
		t.Error("want an error for a directory that is no cluster's")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

func TestOneAtATime(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cluster")
	unlock, err := controlplane.LockDir(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"up", "down"} {
		if err := run(t.Context(), []string{command, "-dir", dir}); err == nil {
			t.Errorf("%s: want an error while another one is at work", command)
		}
	}
	inherit(t, filepath.Dir(dir))
	unlock()
	if err := run(t.Context(), []string{"down", "-dir", dir}); err != nil {
		t.Error(err)
	}
}

// inherit opens the files of this process for path once more, as they are open in a process that another test has
// forked and that has not come to its exec, until the test ends.
func inherit(t *testing.T, path string) {
	t.Helper()
	want, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	inherited := 0
	for _, file := range files {
		if got, err := os.Stat(filepath.Join("/proc/self/fd", file.Name())); err != nil || !os.SameFile(got, want) {
			continue
		}
		fd, err := strconv.Atoi(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		copied, err := syscall.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		inherited++
		t.Cleanup(func() { syscall.Close(copied) })
	}
	if inherited == 0 {
		t.Fatalf("%s is not open", path)
	}
}

func TestInterruptedUpLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cluster")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- run(ctx, []string{"up", "-dir", dir, "-nodes", "1"}) }()
	for { // until its first process has a log
		if _, err := os.Stat(filepath.Join(dir, "etcd.log")); err == nil {
			break
		}
		select {
		case err := <-done:
			t.Fatalf("up ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("want an error")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: want it gone, got %v", dir, err)
	}
}

func TestUpWantsNodes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cluster")
	for _, args := range [][]string{{"-nodes", "0"}, {"-gpus", "-1"}} {
		if err := run(t.Context(), append([]string{"up", "-dir", dir}, args...)); err == nil {
			t.Errorf("%v: want an error", args)
		}
	}
}
