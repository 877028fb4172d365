package faults // fault: ST1000

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
)

var errBase = errors.New("base")

// Holder keeps a context.
type Holder struct {
	Ctx context.Context // fault: containedctx
}

func fails() error { return errBase }

// Faults has one on each of its lines.
func Faults(ctx context.Context, log logr.Logger) error {
	fails() // fault: errcheck
	n := 1  // fault: ineffassign
	n = len(fmt.Sprint(ctx))
	log.Info("odd", "key")                                // fault: loggercheck
	if err := fails(); err == errBase || n == sum(n, 2) { // fault: errorlint
		return errors.New("equal")
	}
	if err := fails(); err != nil {
		return nil // fault: nilerr
	}
	dropsContext()                    // fault: contextcheck
	fmt.Printf("%d of %d", sum(n, 2)) // fault: printf SA5009
	if b := n > 1; b == true {        // fault: S1002
		var text string = fmt.Sprint(n) // fault: QF1011 ST1023
		log.Info(text)
	}
	return fails()
}

func dropsContext() { takesContext(context.Background()) }

func takesContext(ctx context.Context) { <-ctx.Done() }

func sum(n, spare int) int { // fault: unparam
	total := 0
	for i := range n {
		total += i
	}
	return total
}

func nobody() {} // fault: unused

// Last does not recieve anything. fault: misspell
func Last() {}
