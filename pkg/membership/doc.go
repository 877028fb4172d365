// SPDX-License-Identifier: Apache-2.0

// Package membership says to which gang a pod belongs, to which leaf of it, and by which mark (docs/decisions, G1):
// from the pod alone, without a look-up. muster-scheduler asks it about every pod. It is pure.
package membership
