// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/procfs"
)

// recordDir has one file per background process: its pid and its start time in the kernel's clock ticks. The start time
// distinguishes a process from a later one with the same pid.
const recordDir = "pids"

func writeRecord(path string, pid int) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, fmt.Appendf(nil, "%d %d\n", pid, startTime(pid)), 0o644)
}

// Background returns the names and pids of the running processes that a control plane started with Background in dir.
func Background(dir string) (map[string]int, error) {
	entries, err := os.ReadDir(filepath.Join(dir, recordDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	running := map[string]int{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, recordDir, entry.Name()))
		if err != nil {
			return nil, err
		}
		var pid int
		var start uint64
		if _, err := fmt.Sscan(string(content), &pid, &start); err == nil && start != 0 && startTime(pid) == start {
			running[entry.Name()] = pid
		}
	}
	return running, nil
}

// StopBackground kills the processes that a control plane started with Background in dir, and returns their names. It
// kills only processes that are recorded there with the same start time. The directory is kept.
func StopBackground(dir string) ([]string, error) {
	running, err := Background(dir)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(running))
	for _, name := range names {
		killGroup(running[name])
	}
	// They are not children of this process, so only the process table shows their end.
	deadline := time.Now().Add(10 * time.Second)
	for len(running) > 0 {
		if running, err = Background(dir); err != nil {
			return names, err
		}
		if time.Now().After(deadline) {
			return names, fmt.Errorf("still running after SIGKILL: %v", running)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return names, nil
}

// RemoveBackground removes the directory of a control plane that was started with Background and has ended. It is an
// error if the directory does not look like one; a missing directory is not an error.
func RemoveBackground(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	running, err := Background(dir)
	if err != nil {
		return err
	}
	if len(running) > 0 {
		return fmt.Errorf("%s: still running: %v", dir, running)
	}
	if _, err := os.Stat(filepath.Join(dir, "pki", "ca.crt")); err != nil {
		return fmt.Errorf("%s is not the directory of a cluster; remove it yourself", dir)
	}
	return os.RemoveAll(dir)
}

// startTime returns the start time of a running process in the kernel's clock ticks, 0 if it is gone or a zombie.
func startTime(pid int) uint64 {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	stat, err := process.Stat()
	if err != nil || stat.State == "Z" || stat.State == "X" {
		return 0
	}
	return stat.Starttime
}
