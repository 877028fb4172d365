// Package logr stands for a package of another module.
package logr

// Logger logs.
type Logger struct{}

// Info logs a message with keys and values.
func (Logger) Info(msg string, keysAndValues ...any) { _, _ = msg, keysAndValues }
