// SPDX-License-Identifier: Apache-2.0

// Package config contains the arguments of Muster's scheduler plugins as the scheduler uses them: complete,
// defaulted, without pointers. Users write the arguments of package v1. Package scheme adds both to the stock
// scheduler's own configuration scheme, so that the arguments of a profile are decoded strictly, defaulted and
// converted like those of an in-tree plugin. Package validation checks every argument. Package profile contains the
// configuration that muster-scheduler uses if none is given.
//
// GangGate has no arguments: it shares the core of GangAdmission. GPUPacking has none either.
//
// +kubebuilder:object:generate=true
package config
