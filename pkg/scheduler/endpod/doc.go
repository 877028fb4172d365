// SPDX-License-Identifier: Apache-2.0

// Package endpod has the requests by which the scheduler ends a pod: it records why, and deletes the pod. They hold for
// the UID of the pod, so that another pod with its name is not touched.
package endpod
