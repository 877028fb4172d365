// SPDX-License-Identifier: Apache-2.0

// Package backfill decides which room a gang that waits is promised, and by when it can start there.
//
// Choose looks for the earliest moment at which the gang fits if pods end as they promise, the shadow time, and plans
// the gang for it. If the pods whose ends are known do not suffice, it plans the gang on the nodes on which the least
// is in use, and there is no such moment. What becomes free on the planned nodes is kept for the gang (package
// reservations); others may use it only as far as they end before the shadow time: EASY backfill.
//
// The package is pure: the current time is an argument. Source: docs/decisions, G25.
package backfill
