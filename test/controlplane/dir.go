// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// tempPattern names the temporary directories, so that an abandoned one can be recognised.
const tempPattern = "muster-local-cluster-"

// makeDir creates the directory of the control plane, the given one or a temporary one, and locks it.
func (cp *ControlPlane) makeDir(context.Context) (err error) {
	if cp.options.Dir != "" {
		if cp.dir, err = filepath.Abs(cp.options.Dir); err != nil {
			return err
		}
		if err := os.MkdirAll(cp.dir, 0o755); err != nil {
			return err
		}
		cp.unlock, err = LockDir(cp.dir)
		return err
	}
	sweepAbandoned()
	// It gets the name for which sweepAbandoned looks only after it is locked: packages are tested in parallel, and a
	// directory without a lock counts as abandoned.
	unlocked, err := os.MkdirTemp("", "new-"+tempPattern)
	if err != nil {
		return fmt.Errorf("making a directory for the control plane: %w", err)
	}
	if cp.unlock, err = LockDir(unlocked); err != nil {
		return err
	}
	cp.dir = filepath.Join(filepath.Dir(unlocked), strings.TrimPrefix(filepath.Base(unlocked), "new-"))
	return os.Rename(unlocked, cp.dir)
}

// sweepAbandoned removes temporary directories whose process was killed before it could Stop. The servers of such a
// process were killed with it (see Process.Start), its files were not removed.
func sweepAbandoned() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), tempPattern+"*"))
	for _, dir := range dirs {
		if unlock, err := LockDir(dir); err == nil {
			os.RemoveAll(dir)
			unlock()
		}
	}
}

// LockDir locks a directory, as a control plane does with its own, until unlock or the end of this process, for
// whatever reason. EWOULDBLOCK: it is locked already.
func LockDir(dir string) (unlock func(), err error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return func() {
		// A process that is forked meanwhile has the file open until its exec, and the lock would live as long.
		_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
		file.Close()
	}, nil
}
