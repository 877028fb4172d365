// Package desired turns facts and decisions into what is to be written: values only, no I/O, no clock.
package desired
