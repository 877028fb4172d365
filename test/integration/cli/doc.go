// SPDX-License-Identifier: Apache-2.0

// Package cli tests kubectl muster on a real API server beside a real muster-scheduler: its answers are those of the
// scheduler, and users with few rights are told what they lack.
package cli
