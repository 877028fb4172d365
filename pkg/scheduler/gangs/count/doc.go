// SPDX-License-Identifier: Apache-2.0

// Package count counts the pods of one gang. It is pure: it has no lock, no client, no clock and no logger.
//
// Each pod has an Entry, which stores what the pod contributes (Share). Numbers are the sums of the shares, with the
// pods that wait (pool) in the order in which they are planned (Order), and the completed pods that count
// (completions). Set replaces the share of one pod by its current one, so a change costs the same for a gang of any
// size.
//
// Heap is an indexed heap: the first of a changing set of items.
package count
