// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// binding is one pod that got its node.
type binding struct {
	pod, node string
	mark      string    // muster-scheduler's mark, "" for others
	at        time.Time // when the watch delivered it, on this process's monotonic clock
}

// annotations are those of the Binding: without the mark muster-scheduler's binding would be smaller.
func (b binding) annotations() map[string]string {
	if b.mark == "" {
		return nil
	}
	return map[string]string{v2alpha2.BoundForAnnotation: b.mark}
}
