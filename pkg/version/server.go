// SPDX-License-Identifier: Apache-2.0

package version

import "fmt"

// The minor versions of API servers that Muster is made for (docs/decisions, N3). The newest is that of the
// kube-scheduler that is built in.
const (
	oldestServer = 35
	newestServer = 37
)

// ServerSkew returns what it means that an API server has the version, for example "v1.38.0", as a clause. "": Muster
// is made for it, or what is given is no version of Kubernetes. newer: the scheduler is older than the server, which
// Kubernetes allows of its own by one minor version.
func ServerSkew(server string) (clause string, newer bool) {
	minor := 0
	if _, err := fmt.Sscanf(server, "v1.%d", &minor); err != nil || minor >= oldestServer && minor <= newestServer {
		return "", false
	}
	if minor < oldestServer {
		return fmt.Sprintf("is older than 1.%d, the oldest that Muster supports", oldestServer), false
	}
	return fmt.Sprintf("is newer than 1.%d, which Muster is built from: fields that it has added are not obeyed", newestServer), true
}
