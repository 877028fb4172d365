// Package report takes the time from a clock that is passed in, and knows no internals of kube-scheduler.
package report

import (
	"context"
	"fmt"

	v1 "k8s.io/apimachinery/pkg/apis/meta/v1" // want `import "k8s.io/apimachinery/pkg/apis/meta/v1" as metav1 \(imports\)`
	"k8s.io/kubernetes/pkg/scheduler/backend" // want `imports k8s.io/kubernetes/pkg/scheduler/backend: only pkg/scheduler/kubescheduler may`

	"time" // want `imports are out of order`
)

type Tree struct{} // want `exported type Tree has no comment`

// Since is documented and reads the clock.
func Since(t time.Time) time.Duration { return time.Since(t) } // want `uses time.Since: the time is a parameter`

func (Tree) Size() int { return 0 } // want `exported Size has no comment`

func (Tree) String() string { return "" }

// Walk has its context in the wrong place.
func Walk(_ Tree, ctx context.Context) error { return ctx.Err() } // want `a context is the first parameter`

const Levels = /* want `exported Levels has no comment` */ 8

// Kinds are documented together.
const (
	Leaf = iota
	Group
)

var start = time.Now() //nolint:clock // a test of suppressions

var end = time.Now() /* want `uses time.Now` `there is nothing to suppress here` */ //nolint:errcheck // another check

var sum = 1 /* want `name what is suppressed` */ //nolint

var now = time.Now() /* want `give the reason` */ //nolint:clock

var passedOn, stamp = time.Sleep, v1.Now // want `uses time.Sleep` `uses v1.Now`

var _ = fmt.Sprint(start.After(end), backend.Size)
