// SPDX-License-Identifier: Apache-2.0

package version

import (
	"fmt"
	"os"
	"regexp"
	"testing"
)

func TestServerSkew(t *testing.T) {
	t.Parallel()
	const older, newer = "is older than 1.35, the oldest that Muster supports",
		"is newer than 1.37, which Muster is built from: fields that it has added are not obeyed"
	for server, want := range map[string]string{
		"v1.34.9": older, "v1.35.0": "", "v1.36.3-eks-1": "", "v1.37.2+k3s1": "", "v1.38.0-beta.0": newer, "v1.100.0": newer,
		"": "", "unknown": "", "v2.0.0": "",
	} {
		if got, isNewer := ServerSkew(server); got != want || isNewer != (want == newer) {
			t.Errorf("version %q %q, newer: %t; want %q", server, got, isNewer, want)
		}
	}
}

// The newest version moves with go.mod.
func TestNewestServerIsBuiltIn(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	built := regexp.MustCompile(`(?m)^\tk8s.io/kubernetes v1\.(\d+)\.`).FindSubmatch(file)
	if built == nil || string(built[1]) != fmt.Sprint(newestServer) {
		t.Errorf("go.mod has kubernetes 1.%s, and the newest server is 1.%d", built[1], newestServer)
	}
}
