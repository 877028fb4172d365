// SPDX-License-Identifier: Apache-2.0

// Package naming defines the names and labels of the children of a PodCliqueSet.
//
// Names are composed here and not parsed, because a name like "a-0-b-1-c" is ambiguous; only PodIndex reads the index
// of a pod. Code that looks for children selects them by the labels of this package and by owner; code that needs an
// index reads it from its label.
//
// The package is pure: it imports the standard library and the label keys of the API only. Names, labels and
// components are those that Grove has published, so that selectors and scripts written for Grove continue to work.
package naming
