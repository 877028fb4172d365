package lifecycle

import "fmt"

// PodEnd says why a pod failed. The zero value: it did not, or nothing says why.
type PodEnd struct {
	// Container is the first container that failed, "" if the pod failed as a whole: it was evicted, say. Init: it is an init
	// container.
	Container string
	Init      bool
	// ExitCode is that of the container.
	ExitCode int32
	// Reason is one word, of the container or the pod: OOMKilled, Evicted. "" if there is none.
	Reason string
}

// String returns the end in words: "container main exited with code 137 (OOMKilled)", "Evicted", "failed".
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
	if e.Reason != "" && e.Reason != "Error" { // what the kubelet calls every non-zero code
		text += " (" + e.Reason + ")"
	}
	return text
}
