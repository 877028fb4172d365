// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "fmt"

// PodEnd describes why a pod failed. The zero value: it did not fail, or the reason is unknown.
type PodEnd struct {
	// Container is the first container that failed, "" if the pod failed as a whole, for example because it was
	// evicted. Init: it is an init container.
	Container string
	Init      bool
	// ExitCode is the exit code of the container.
	ExitCode int32
	// Reason is the reason in the status of the container or the pod, such as OOMKilled or Evicted. "" if there is none.
	Reason string
}

// String returns a description of the end: "container main exited with code 137 (OOMKilled)", "Evicted", "failed".
func (e PodEnd) String() string {
	switch {
	case e.Container == "" && e.Reason == "":
		return "failed"
	case e.Container == "":
		return e.Reason
	}
	text := fmt.Sprintf("container %s exited with code %d", e.Container, e.ExitCode)
	if e.Init {
		text = "init " + text
	}
	if e.Reason != "" && e.Reason != "Error" { // the kubelet uses it for every non-zero exit code
		text += " (" + e.Reason + ")"
	}
	return text
}
