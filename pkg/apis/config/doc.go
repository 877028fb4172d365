// Package config holds the arguments of Muster's scheduler plugins as the scheduler uses them: complete, defaulted, without
// pointers. What people write is in package v1; package scheme joins the two with the stock scheduler's own
// configuration, so that the args of a profile are decoded strictly, defaulted and converted like those of an in-tree
// plugin; package validation checks every argument; package profile has the configuration muster-scheduler runs with
// when it is given none.
//
// GangGate has no arguments: it shares the core of GangAdmission.
//
// +kubebuilder:object:generate=true
package config
