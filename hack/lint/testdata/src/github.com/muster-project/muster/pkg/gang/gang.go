package gang // want `package gang has no comment \(comments\)`

import (
	"context" // want `imports context`
	"fmt"
	"os" // want `imports os: the pure core has no I/O, waits for nothing and returns its reasons \(imports\)`

	client "k8s.io/client-go" // want `a pure package knows the standard library and`

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

var _ = fmt.Sprint(os.Args, client.Name)
