// Package naming says what the children of a PodCliqueSet are called and which labels they carry.
//
// Names are made here and never taken apart: "a-0-b-1-c" has several readings. Who looks for children selects them by
// the labels of this package and by owner; who wants an index reads its label.
//
// The package is pure: standard library and the label keys of the API only. Names, labels and components follow Grove's
// published ones, so that what users wrote for them goes on working.
package naming
