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

// makeDir creates the directory of the control plane: the given one, or a temporary one held by a lock that the kernel
// drops when this process ends, however it ends.
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
	// It gets the name that sweepers look for when it is locked: packages are tested side by side, and a directory without
	// a lock is abandoned.
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
// process went with it (see startProcess), its files did not.
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

// lockFile takes the exclusive lock of the file, which is created when missing. An error when somebody else has it.
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
