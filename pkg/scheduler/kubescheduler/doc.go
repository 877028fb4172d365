// Package kubescheduler is the one room that touches what kube-scheduler keeps to itself: the framework's runtime behind the plugin
// handle, the scheduling queue behind the scheduler's NextPod, NodeInfo clones. Moving to the next Kubernetes minor is
// work in here.
//
// Snapshot lets the planner (pkg/placement) ask the stock filters what would fit. Attach hands planned members to the
// scheduling loop one after another. Bind posts a binding as the stock binder does, with a mark.
package kubescheduler
