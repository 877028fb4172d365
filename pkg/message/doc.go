// SPDX-License-Identifier: Apache-2.0

// Package message builds the parts of texts that users read: counts with their nouns, lists that end with how many more
// there are, amounts of resources, and texts cut to what their sink takes. Pure.
package message
