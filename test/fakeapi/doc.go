// SPDX-License-Identifier: Apache-2.0

// Package fakeapi has servers in memory. PodGroups is an API server for PodGroups with the requests that the scheduler
// needs: create, replace, list, watch, and status updates with conflicts. Tests call it directly, or through HTTP like
// a client; it can have Topologies, too. Extender is an HTTP extender of the scheduler.
package fakeapi
