// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
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
		return test || matchesAny([]string{"pkg/scheduler/gangadmission", "pkg/scheduler/kubescheduler"}, dir)
	case "comments":
		return test || matches("cmd/...", dir)
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

const (
	down = "imports point down only"
	io   = "the pure core has no I/O, waits for nothing and returns its reasons"
)

// importRules are the directions of docs/architecture.md. test/purity checks the pure core once more, and more strictly.
var importRules = []importRule{
	{
		in:   []string{"pkg/gang", "pkg/placement"},
		only: []string{module + "/pkg/gang"},
	},
	{
		in:   []string{"pkg/lifecycle", "pkg/naming"},
		only: []string{module + "/pkg/naming", module + "/pkg/message", module + "/pkg/apis/grove/v1alpha1"},
	},
	{
		in:    []string{"pkg/gang", "pkg/placement", "pkg/lifecycle", "pkg/naming"},
		never: map[string]string{"context": io, "log": io, "net": io, "os": io},
	},
	{
		in: []string{"pkg/observed", "pkg/desired", "pkg/podgroup", "pkg/message"},
		never: map[string]string{
			"context": "translators wait for nothing", "os": "translators do no I/O", "net": "translators do no I/O",
			"k8s.io/klog":                    "translators return what they have to say",
			"k8s.io/client-go":               "translators hold no client",
			"sigs.k8s.io/controller-runtime": "translators hold no client",
			"k8s.io/kubernetes":              "translators know API types only",
			module + "/pkg/controllers":      down, module + "/pkg/scheduler": down, module + "/pkg/webhooks": down,
		},
	},
	{
		in: []string{"pkg/apis/scheduling/...", "pkg/apis/grove/..."},
		never: map[string]string{
			"k8s.io/client-go": "API types need apimachinery only", "k8s.io/kubernetes": "API types need apimachinery only",
			"sigs.k8s.io/controller-runtime": "API types need apimachinery only",
		},
	},
	{
		// One package touches the internals of kube-scheduler: the next Kubernetes minor is one package's work. The
		// configuration has types of its own, which these files extend.
		in: []string{"pkg/...", "cmd/...", "test/sim"},
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
}

// takesTime are the packages in which the time is a parameter, or comes from a clock that is passed in.
var takesTime = []string{
	"pkg/gang/...", "pkg/placement/...", "pkg/lifecycle/...", "pkg/naming/...", "pkg/observed/...", "pkg/desired/...",
	"pkg/podgroup/...", "pkg/message/...", "pkg/controllers/...", "pkg/webhooks/...", "pkg/scheduler/gangstate/...",
	"pkg/scheduler/gangadmission/...", "pkg/scheduler/report/...", "pkg/scheduler/release/...",
}

// waits are the packages among them that wait by timers, but must not read the clock.
var waits = []string{"pkg/controllers/...", "pkg/webhooks/..."}

var (
	readsClock = map[string]bool{"time.Now": true, "time.Since": true, "time.Until": true, "k8s.io/apimachinery/pkg/apis/meta/v1.Now": true,
		"k8s.io/apimachinery/pkg/apis/meta/v1.NowMicro": true}
	usesClock = map[string]bool{"time.Now": true, "time.Since": true, "time.Until": true, "k8s.io/apimachinery/pkg/apis/meta/v1.Now": true,
		"k8s.io/apimachinery/pkg/apis/meta/v1.NowMicro": true, "time.Sleep": true, "time.After": true, "time.AfterFunc": true,
		"time.Tick": true, "time.NewTimer": true, "time.NewTicker": true}
)

// clockFunctions returns the functions that a file must not use; nil if it may use all.
func clockFunctions(file string) map[string]bool {
	dir, _ := split(file)
	switch {
	case matchesAny(waits, dir):
		return readsClock
	case matchesAny(takesTime, dir):
		return usesClock
	}
	return nil
}
