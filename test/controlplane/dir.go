// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// tempPattern names the temporary directories, so that an abandoned one can be recognised.
const tempPattern = "muster-controlplane-"

// makeDir creates the directory of the control plane: the given one, or a temporary one with a lock that the kernel
// releases when this process ends, for whatever reason.
func (cp *ControlPlane) makeDir() error {
	if cp.options.Dir != "" {
		dir, err := filepath.Abs(cp.options.Dir)
		if err != nil {
			return err
		}
		cp.dir = dir
		return os.MkdirAll(dir, 0o755)
	}

	sweepAbandoned()
	// It gets the name for which sweepAbandoned looks only after it is locked: packages are tested in parallel, and a
	// directory without a lock counts as abandoned.
	unlocked, err := os.MkdirTemp("", "new-"+tempPattern)
	if err != nil {
		return fmt.Errorf("making a directory for the control plane: %w", err)
	}
	if cp.lock, err = lockFile(filepath.Join(unlocked, "lock")); err != nil {
		return err
	}
	cp.dir = filepath.Join(filepath.Dir(unlocked), strings.TrimPrefix(filepath.Base(unlocked), "new-"))
	return os.Rename(unlocked, cp.dir)
}

// sweepAbandoned removes temporary directories whose process was killed before it could Stop. The servers of such a
// process were killed with it (see Process.Start), its files were not removed.
func sweepAbandoned() {
	locks, _ := filepath.Glob(filepath.Join(os.TempDir(), tempPattern+"*", "lock"))
	for _, path := range locks {
		file, err := lockFile(path)
		if err != nil {
			continue // in use
		}
		os.RemoveAll(filepath.Dir(path))
		file.Close()
	}
}

// lockFile locks the file exclusively; it is created if it does not exist. An error if another process has the lock.
func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return file, nil
}
