// SPDX-License-Identifier: Apache-2.0

// Package kubescheduler contains the code that uses internals of kube-scheduler: the framework's runtime behind the
// plugin handle, the scheduling queue behind the scheduler's NextEntity, the cache's snapshots, and clones of NodeInfo.
// Updating to the next Kubernetes minor version requires changes here; docs/upstream.md lists what is used, and the few
// places elsewhere: the command, the informers and the profile.
//
// Snapshot lets the planner (pkg/placement) run the stock filters on planned states. FilterCache keeps their results
// between plans, and Classify groups pods that they do not distinguish. Shapes counts how many pods fit, outside of
// the scheduling loop. Queue keeps the gated pods of gangs out of the stock queue; Attach installs it and hands
// planned members to the scheduling loop one after another. Bind posts a binding as the stock binder does, with a
// mark. GPUPacking is a plugin of its own, which scores nodes.
package kubescheduler
