// Package kubescheduler touches what kube-scheduler keeps to itself: the framework's runtime behind the plugin handle, the
// scheduling queue behind the scheduler's NextPod, the cache's snapshots, NodeInfo clones. Moving to the next Kubernetes
// minor is work in here.
//
// Snapshot lets the planner (pkg/placement) ask the stock filters what would fit; FilterCache keeps between plans what they
// said, and Classify groups the pods that they do not tell apart. Shapes counts outside of the loop how many pods fit.
// Queue keeps the gated pods of gangs out of the stock queue. Attach puts it there and hands planned members to the
// scheduling loop one after another. Bind posts a binding as the stock binder does, with a mark.
// GuardPreemption has the stock plugin DefaultPreemption ask which pods of gangs may be its victims.
package kubescheduler
