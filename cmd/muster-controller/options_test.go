// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestValidateOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*options)
		want   []string // parts of the error; none: valid
	}{
		"the defaults are valid": {change: func(*options) {}},
		"external certificates need a directory, and nothing else about certificates": {
			change: func(o *options) { o.certManagement, o.certSecret, o.certValidity = "external", "", 0 },
		},
		"external certificates without a directory": {
			change: func(o *options) { o.certManagement, o.certDir = "external", "" },
			want:   []string{"--webhook-cert-dir"},
		},
		"everything wrong is told at once": {
			change: func(o *options) {
				o.certManagement, o.webhookPort, o.namespace, o.leaderElectLease = "nobody", 0, "", ""
			},
			want: []string{`--cert-management is "nobody"`, "--webhook-port", "--namespace", "--leader-elect-lease"},
		},
		"a certificate that is due for renewal the moment it is made": {
			change: func(o *options) { o.certValidity, o.certRenewBefore = 24*time.Hour, 23*time.Hour },
			want:   []string{"--cert-renew-before is 23h0m0s"},
		},
		"a certificate that lives too short": {
			change: func(o *options) { o.certValidity, o.certRenewBefore = time.Hour, time.Minute },
			want:   []string{"--cert-validity is 1h0m0s"},
		},
		"a class that is no label": {
			change: func(o *options) { o.classes.Class, o.classes.GroveLease = "my class", "" },
			want:   []string{`--controller-class is "my class"`, "--grove-lease must not be empty; --grove-namespaces= turns it off"},
		},
		"no class": {change: func(o *options) { o.classes.Class = "" }, want: []string{"--controller-class"}},
		"kinds that are unknown": {
			change: func(o *options) { o.groupedKinds = []string{"Job", "Pod"} },
			want:   []string{`--grouped-kinds has "Pod": the kinds are Job, StatefulSet, Deployment, LeaderWorkerSet, JobSet, RayCluster, PodGroup.scheduling.x-k8s.io, PodGroup.scheduling.volcano.sh, PodGroup.scheduling.k8s.io, CompositePodGroup.scheduling.k8s.io`},
		},
		"a file of rules that is not there": {change: func(o *options) { o.kindRules = "nowhere.yaml" }, want: []string{"--kind-rules: open nowhere.yaml"}},
		"no kinds":                          {change: func(o *options) { o.groupedKinds = nil }},
		"no namespaces of Grove":            {change: func(o *options) { o.classes.GroveNamespaces = nil }},
		"without leader election its flags do not matter": {
			change: func(o *options) { o.leaderElect, o.leaderElectLease, o.leaderLeaseDuration = false, "", 0 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := defaultOptions()
			o.namespace = "ns"
			tc.change(o)
			err := o.validate()
			if (err != nil) != (len(tc.want) > 0) {
				t.Fatalf("validate() = %v", err)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}

func TestHosts(t *testing.T) {
	o := defaultOptions()
	o.namespace, o.webhookHost, o.webhookExtraHosts = "ns", "10.0.0.1", []string{"hooks.example", "localhost"}
	want := []string{"muster-webhooks.ns.svc", "muster-webhooks.ns.svc.cluster.local", "muster-webhooks.ns",
		"localhost", "127.0.0.1", "::1", "10.0.0.1", "hooks.example"}
	if diff := cmp.Diff(want, o.webhookHosts()); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	o.webhookHost = "0.0.0.0" // an address to listen on, not one to call
	o.webhookExtraHosts = nil
	if diff := cmp.Diff(want[:6], o.webhookHosts()); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
}

func TestVersionFlag(t *testing.T) {
	var out bytes.Buffer
	cmd := newCommand()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--version"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "muster-controller ") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("--version prints %q", out.String())
	}
}
