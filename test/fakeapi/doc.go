// SPDX-License-Identifier: Apache-2.0

// Package fakeapi is an in-memory API server for PodGroups with the requests that the scheduler needs: create, replace,
// list, watch, and status updates with conflicts. Tests call it directly, or through HTTP like a client.
package fakeapi
