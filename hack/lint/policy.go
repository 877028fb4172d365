// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"
)

// checksLeftOut are the checks of staticcheck that are matters of taste: names, De Morgan, embedded fields spelled out.
var checksLeftOut = map[string]bool{"ST1003": true, "QF1001": true, "QF1008": true}

var staticcheckName = regexp.MustCompile(`^(SA|ST|QF|S)[0-9]+$`)

func isStaticcheck(check string) bool { return staticcheckName.MatchString(check) }

// uncheckedErrors are the functions whose errors may be ignored: cleaning up after an operation that has already
// succeeded or failed.
var uncheckedErrors = []string{
	"(io.Closer).Close", "(*os.File).Close", "(net.Listener).Close", "os.Remove", "os.RemoveAll",
	"fmt.Fprint", "fmt.Fprintf", "fmt.Fprintln", "syscall.Kill",
}

// leftOut reports whether findings of a check in a file do not count.
func leftOut(check, file string) bool {
	dir, base := split(file)
	test := strings.HasSuffix(base, "_test.go")
	switch check {
	case "clock", "errcheck", "unparam", "containedctx":
		return test
	case "contextcheck":
		// What event handlers and the queue's callbacks do has a logger and no context to pass on: it never waits.
		return test || matchesAny([]string{"pkg/scheduler/backlog", "pkg/scheduler/gangadmission", "pkg/scheduler/kubescheduler"}, dir)
	case "comments":
		return test || matches("cmd/...", dir)
	case "columns":
		return matches("pkg/apis/...", dir) // its comments are the descriptions in the CRDs, line by line
	}
	return false
}

// importNames are the names that some packages have everywhere.
var importNames = map[string]string{
	"k8s.io/api/core/v1":                   "corev1",
	"k8s.io/apimachinery/pkg/apis/meta/v1": "metav1",
	"k8s.io/apimachinery/pkg/api/errors":   "apierrors",
	"k8s.io/kube-scheduler/framework":      "fwk",
	"sigs.k8s.io/controller-runtime":       "ctrl",
}

var (
	readsClock = []string{"time.Now", "time.Since", "time.Until", "k8s.io/apimachinery/pkg/apis/meta/v1.Now", "k8s.io/apimachinery/pkg/apis/meta/v1.NowMicro"}
	waits      = []string{"time.Sleep", "time.After", "time.AfterFunc", "time.Tick", "time.NewTimer", "time.NewTicker"}
)

// rules are the directions of docs/architecture.md, and where the time is a parameter or comes from a clock that is
// passed in. For the pure packages, test/purity has the rules.
var rules = []rule{
	{
		in: []string{"pkg/apis/scheduling/...", "pkg/apis/grove/...", "pkg/apis/topology/..."},
		never: map[string]string{
			"k8s.io/client-go": "API types need apimachinery only", "k8s.io/kubernetes": "API types need apimachinery only",
			"sigs.k8s.io/controller-runtime": "API types need apimachinery only",
		},
	},
	{
		// One package touches the internals of kube-scheduler: the next Kubernetes minor is one package's work. The
		// configuration has types of its own, which these files extend.
		in: []string{"pkg/...", "cmd/...", "test/sim", "test/podlife"},
		except: []string{"pkg/scheduler/kubescheduler", "pkg/apis/config/register.go", "pkg/apis/config/profile/profile.go",
			"pkg/apis/config/scheme/scheme.go"},
		never: map[string]string{"k8s.io/kubernetes/pkg": "only pkg/scheduler/kubescheduler may"},
	},
	{
		in:     []string{"pkg/...", "cmd/..."},
		except: []string{"pkg/scheduler/command.go"},
		never:  map[string]string{"k8s.io/kubernetes/cmd": "only the command may, pkg/scheduler/command.go"},
	},
	{
		in:     []string{"/..."},
		except: []string{"test/sim"},
		never:  map[string]string{module + "/test/sim": "only tests import it"},
	},
	{
		in:    []string{"pkg/webhooks/...", "pkg/controllers/...", "pkg/startorder", "cmd/muster-controller", "cmd/muster-wait"},
		tests: true,
		never: map[string]string{module + "/pkg/scheduler": "controllers and scheduler meet in API objects and in the pure core"},
	},
	// Controllers and webhooks wait by timers, but must not read the clock.
	{in: []string{"pkg/controllers/...", "pkg/webhooks/..."}, calls: readsClock},
	{
		in: []string{
			"pkg/scheduler/gangs/...", "pkg/scheduler/backlog/...", "pkg/scheduler/gangadmission/...", "pkg/scheduler/report/...", "pkg/scheduler/release/...",
			"pkg/scheduler/evict/...", "pkg/scheduler/endpod/...",
		},
		calls: slices.Concat(readsClock, waits),
	},
}
