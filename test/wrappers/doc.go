// SPDX-License-Identifier: Apache-2.0

// Package wrappers builds API objects for tests in one readable line each:
//
//	wrappers.MakePodGroup("train", "ml").MinSubGroup(2).
//		SubGroup("workers", 4).SubGroup("leader", 1).Obj()
//	wrappers.MakePod("train-0", "ml").Gang("train").SubGroup("workers").GPUs(1).Obj()
//	wrappers.MakePodCliqueSet("llm", "ml").Clique("frontend", 3, wrappers.MinAvailable(2)).
//		Clique("worker", 4).ScalingGroup("decode", 2, 1, "worker").Obj()
//
// Every builder starts from an object that a real API server accepts.
package wrappers
