// Package fakeapi is an API server for PodGroups, as far as the scheduler needs one: create, replace, list, watch, and
// status updates with conflicts. Tests call it directly, or through HTTP as a client does.
package fakeapi
