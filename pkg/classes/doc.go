// SPDX-License-Identifier: Apache-2.0

// Package classes reads what decides whether muster-controller serves a PodCliqueSet: the class that the set or its
// namespace names, and the Lease of Grove's operator. The decision itself is workload.ServesSet. The controllers and
// the webhooks ask the same Reader: an object that the controllers leave alone is not changed or refused by the
// webhooks.
package classes
