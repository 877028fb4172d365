// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"strings"
	"sync"
)

// Warnings records the warnings that a client receives from the API server. The zero value is ready for use:
//
//	var warnings controlplane.Warnings
//	config := cp.Admin()
//	config.WarningHandler = &warnings
type Warnings struct {
	mu   sync.Mutex
	said []string // guarded by mu
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *Warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

// Take returns the warnings since the last call, one per line. "" for none.
func (w *Warnings) Take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := strings.Join(w.said, "\n")
	w.said = nil
	return all
}
