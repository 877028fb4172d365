//go:build workloads

// SPDX-License-Identifier: Apache-2.0

package workload

// nativeCase is one of the published cases of PodGroups of Kubernetes, from the integration tests of kube-scheduler
// 1.37.2.
type nativeCase struct {
	// story has one step a line: nativeStory.step.
	story string
	// differs says what kube-scheduler does instead, and why Muster does not. "": it does the same.
	differs string
}

// nativeCases are by the file and line of kube-scheduler's case, below test/integration/scheduler: G
// podgroup/podgroup_test.go, Q podgroup/queueing/queueing_test.go, R podgroup/queueing_test.go, C podgroup/cpg_test.go,
// T podgroup/topology_aware_scheduling/tas_test.go, U cpg_tas_test.go beside it, P
// preemption/podgroup/podgrouppreemption_test.go, A podgroup/podgroup_affinity_test.go. B is bad input, by the
// validation of that release. Not here: G608's absence of an attempt, V101 and Q537, which are about volumes, Q245 and
// Q274 (what comes in the middle of a cycle), P1312 (a victim that takes its time).
var nativeCases = map[string]nativeCase{
	// Gangs.
	"G126: a gang starts as a whole": {story: `
		nodes 1 1 1
		group a gang=3
		pods a 3
		bound a=3
		says a True Scheduled`},
	"G151: another pod joins a gang that runs": {story: `
		nodes 1 1 1 1
		group a gang=3
		pods a 3
		bound a=3
		pods a 1
		bound a=4`},
	"G176: a gang waits for its pods": {story: `
		nodes 1 1 1
		group a gang=3
		pods a 2
		waits kubernetes-a WaitingForPods
		bound a=0
		pods a 1
		bound a=3`},
	"G201: pods wait for their PodGroup": {story: `
		nodes 1
		pods a 2
		event a-0 PodGroupNotFound names PodGroup "a"
		bound a=0
		group a gang=2
		says a False Unschedulable
		bound a=0
		nodes 1
		bound a=2
		says a True Scheduled`,
		differs: "kube-scheduler says nothing about pods without their group; here an event does"},
	"G254: the minimum starts, and the rest waits": {story: `
		nodes 1 1 1
		group a gang=3
		pods a 4
		bound a=3
		pending a 1
		nodes 1
		bound a=4`},
	"G291, G316: two gangs compete": {story: `
		nodes 1 1 1
		group a gang=3
		group b gang=3
		pods a 1
		pods b 1
		pods a 1
		pods b 2
		pods a 1
		either a=3,b=0 a=0,b=3`},
	"G341: an older pod takes the room": {story: `
		nodes 1 1 1
		pods alone 1
		bound alone=1
		group a gang=3
		pods a 3
		says a False Unschedulable
		bound a=0 alone=1`},
	"G554: minCount is decreased, for lack of pods": {story: `
		nodes 1 1 1 1
		group a gang=5
		pods a 4
		waits kubernetes-a WaitingForPods
		mincount a 4
		bound a=4`},
	"G579: minCount is decreased, for lack of room": {story: `
		nodes 1 1 1 1
		group a gang=5
		pods a 5
		says a False Unschedulable
		bound a=0
		mincount a 4
		bound a=4`},
	"G608: minCount is increased": {story: `
		nodes 8
		group a gang=5
		pods a 4
		waits kubernetes-a WaitingForPods
		mincount a 6
		needs kubernetes-a 6
		pods a 1
		waits kubernetes-a WaitingForPods
		bound a=0
		pods a 1
		bound a=6`},
	"A120: two members that exclude each other": {story: `
		nodes 8
		group a gang=2
		pods a 2 apart
		says a False Unschedulable
		bound a=0
		nodes 8
		bound a=2`},

	// Without a minimum.
	"G362: basic is no gang": {story: `
		nodes 1 1 1
		group a basic
		pods a 1
		bound a=1
		says a True Scheduled
		pods a 2
		bound a=3`},
	"G387: part of it waits": {story: `
		nodes 1 1
		group a basic
		pods a 3
		bound a=2
		pending a 1`},
	"T1062: only the small one fits": {story: `
		nodes 2
		group a basic
		pods a 1 gpus=3
		pods a 1
		bound a=1`},

	// Composites.
	"C89: a sub-tree that lacks a child keeps what would fit": {story: `
		nodes 1 1 1
		composite root gang=2
		composite l gang=1 in=root
		composite r gang=2 in=root
		group a gang=1 in=l
		group b gang=1 in=r
		pods a 1
		pods b 1
		waits composite-root WaitingForPods
		bound a=0 b=0
		group c gang=1 in=r
		pods c 1
		bound a=1 b=1 c=1
		says c True Scheduled`},
	"C205: two of three groups": {story: `
		nodes 1 1
		composite root gang=2
		group a gang=1 in=root
		group b gang=1 in=root
		group c gang=1 in=root
		pods c 1 gpus=5
		pods a 1
		pods b 1
		bound a=1 b=1 c=0
		says a True Scheduled`},
	"C274: basic, with gangs": {story: `
		nodes 1 1
		composite root basic
		group a gang=2 in=root
		group b gang=2 in=root
		pods b 2 gpus=5
		pods a 2
		bound a=2 b=0`},
	"C394: a basic child counts with one pod": {story: `
		nodes 1 1
		composite root gang=2
		group a basic in=root
		group b basic in=root
		pods a 2
		pods b 1
		bound a=1 b=1`},
	"C520: a child of a tree that runs": {story: `
		nodes 1 1 1 1
		composite root gang=1
		group a gang=1 in=root
		pods a 1
		bound a=1
		group b gang=1 in=root
		pods b 1
		bound a=1 b=1
		composite n gang=2 in=root
		group c gang=1 in=n
		pods c 1
		pending c 1
		bound c=0
		group d gang=1 in=n
		pods d 1
		bound a=1 b=1 c=1 d=1`},
	"C655: a parent without a workload": {story: `
		refused group a gang=1 in=root orphan`},
	"R56: the root is missing": {story: `
		nodes 1
		group a gang=1 in=root
		pods a 1
		event a GangNotMade "root", which does not exist
		bound a=0
		composite root gang=1
		bound a=1`,
		differs: "kube-scheduler says nothing; here an event does"},
	"R122: a child is missing": {story: `
		nodes 1 1
		composite root gang=2
		group a gang=1 in=root
		pods a 1
		pods b 1
		waits composite-root WaitingForPods
		bound a=0 b=0
		group b gang=1 in=root
		bound a=1 b=1`},
	"R196: a leaf needs fewer": {story: `
		nodes 1 1
		composite root gang=2
		group a gang=2 in=root
		group b gang=1 in=root
		pods a 1
		pods b 1
		waits composite-root WaitingForPods
		mincount a 1
		bound a=1 b=1`},

	// Topology.
	"T135: no rack has room for all": {story: `
		nodes rack=r1 1 1
		nodes rack=r2 1 1
		group a gang=3 by=rack
		pods a 3
		says a False Unschedulable
		bound a=0
		nodes rack=r1 1
		bound a=3
		together rack a`},
	"T364: the fuller of two racks": {story: `
		nodes rack=r1 4
		nodes rack=r2 4
		pods alone 1
		bound alone=1
		group a gang=2 by=rack
		pods a 2
		bound a=2
		together rack a alone`},
	"T730: the smaller rack, to which later pods are tied": {story: `
		nodes rack=r1 1 1 1 1 1 1
		nodes rack=r2 1 1 1 1
		group a gang=3 by=rack
		pods a 3
		bound a=3
		pods a 1
		bound a=4
		pods a 1
		pending a 1
		bound a=4
		together rack a`},
	"T792: a later pod preempts nobody": {story: `
		nodes rack=r1 1 1 1
		pods alone 1
		bound alone=1
		group a gang=2 by=rack priority=high
		pods a 2
		bound a=2
		pods a 1
		pending a 1
		bound a=2 alone=1`,
		differs: "kube-scheduler evicts for it; a pod above the minimum is not worth another's life"},
	"T996: basic, as many of three as fit in one rack": {story: `
		nodes rack=r1 1 1
		nodes rack=r2 1
		group a basic by=rack
		pods a 3
		either a=1 a=2
		pending a 1
		together rack a`,
		differs: "kube-scheduler takes the rack in which the most fit; here the minimum, one pod, takes the tightest"},
	"T1195: the first pod picks the rack": {story: `
		nodes rack=r1 1 1 1
		nodes rack=r2 1
		group a basic by=rack
		pods a 1
		bound a=1
		pods a 2
		pending a 1
		together rack a`},
	"U107: all leaves in one rack": {story: `
		nodes rack=r1 1 1
		nodes rack=r2 1 1 1
		composite root gang=2 by=rack
		group a gang=1 in=root
		group b gang=2 in=root
		pods a 1
		pods b 2
		bound a=1 b=2
		together rack a b`},
	"U159: a pod that runs fixes the rack of the tree": {story: `
		nodes rack=r1 1 1
		nodes rack=r2 1 1
		composite root gang=1 by=rack
		group a gang=1 in=root
		pods a 1
		bound a=1
		group b gang=1 in=root
		pods b 1
		bound a=1 b=1
		together rack a b`},
	"U210: no rack has room for both children": {story: `
		nodes rack=r1 1 1
		nodes rack=r2 1 1
		composite root gang=2 by=rack
		group a gang=2 in=root
		group b gang=1 in=root
		pods a 2
		pods b 1
		says a False Unschedulable
		says b False Unschedulable
		bound a=0 b=0`},
	"U252, U492: zone, block and rack": {story: `
		nodes zone=z1 block=b1 rack=r1 1 1
		nodes zone=z1 block=b1 rack=r2 1
		nodes zone=z1 block=b2 rack=r3 1 1
		nodes zone=z2 block=b3 rack=r4 1 1
		nodes zone=z2 block=b3 rack=r5 1 1
		nodes zone=z2 block=b4 rack=r6 1 1
		composite root gang=2 by=zone
		composite n gang=2 in=root by=block
		group a gang=2 in=n by=rack
		group b gang=2 in=n by=rack
		group c gang=2 in=root by=rack
		pods a 2
		pods b 2
		pods c 2
		bound a=2 b=2 c=2
		together zone a b c
		together block a b
		together rack a
		together rack b
		together rack c`},
	"U318: one child, for which there is room": {story: `
		nodes rack=r1 1 1
		composite root gang=1 by=rack
		group a gang=3 in=root
		group b gang=2 in=root
		pods a 3
		pods b 2
		bound a=0 b=2`},
	"U448: pods that run in two zones": {story: `
		nodes zone=z1 1 1
		nodes zone=z2 1 1
		group a gang=3 by=zone
		on zone=z1 a
		on zone=z2 a
		pods a 1
		pending a 1
		bound a=2`},
	"U1262: a later child stays in the zone": {story: `
		nodes zone=z1 1 1
		composite root gang=1 by=zone
		group a gang=2 in=root
		pods a 2
		bound a=2
		nodes zone=z2 1 1
		group b gang=1 in=root
		pods b 1
		pending b 1
		bound a=2 b=0`},

	// Preemption.
	"P94: all pods go for a gang": {story: `
		nodes 1 1 1
		pods alone 3
		bound alone=3
		group a gang=3 priority=high
		pods a 3
		bound a=3 alone=0`},
	"P140: as many as are needed": {story: `
		nodes 1 1 1
		pods alone 3
		bound alone=3
		group a gang=2 priority=high
		pods a 2
		bound a=2 alone=1`,
		differs: "kube-scheduler evicts on the nodes that score best; here the victims decide"},
	"P253: not enough": {story: `
		nodes 1 1
		pods alone 2
		bound alone=2
		group a gang=3 priority=high
		pods a 3
		says a False Unschedulable
		bound a=0 alone=2`},
	"P277: the lowest go": {story: `
		nodes 1 1 1
		pods alone 2
		pods other 1 priority=high alone
		bound alone=2 other=1
		group a gang=2 priority=higher
		pods a 2
		bound a=2 other=1 alone=0`},
	"P299: a group that ends as a whole": {story: `
		nodes 1 1 1
		group v gang=3 all
		pods v 3
		bound v=3
		pods alone 1 priority=high
		bound v=0 alone=1
		target v
		says v True Scheduled`},
	"P321: a basic group that ends as a whole": {story: `
		nodes 1 1 1
		group v basic all
		pods v 3
		bound v=3
		pods alone 1 priority=high
		bound v=0 alone=1
		target v`},
	"P321, single: the surplus of a basic group": {story: `
		nodes 1 1 1
		group v basic
		pods v 3
		bound v=3
		pods alone 1 priority=high
		bound v=2 alone=1`},
	"P343: evicted for the minimum alone": {story: `
		nodes 1 1
		pods alone 2
		bound alone=2
		group a gang=1 priority=high
		pods a 2
		bound a=1 alone=1
		pending a 1`,
		differs: "kube-scheduler evicts for every pod of the group; a pod above the minimum is not worth another's life"},
	"P525, P595: never": {story: `
		nodes 1
		pods alone 1
		bound alone=1
		group a gang=1 priority=never
		pods a 1
		says a False Unschedulable
		bound a=0 alone=1`},
	"P860: what fits is bound": {story: `
		nodes 1 1
		pods alone 1
		bound alone=1
		group a gang=1 priority=high
		pods a 2
		bound a=1 alone=1
		pending a 1`,
		differs: "kube-scheduler preempts for the rest in the next cycle"},
	"P962: the zone with fewer victims": {story: `
		nodes zone=z1 1 1
		nodes zone=z2 2
		pods alone 3
		bound alone=3
		group a gang=2 by=zone priority=high
		pods a 2
		bound a=2 alone=2
		together zone a`,
		differs: "kube-scheduler takes the zone that scores best; here the victims decide"},
	"P1613: a composite that ends as a whole": {story: `
		nodes 1 1 1
		composite root gang=2 all
		group v gang=2 in=root
		group u gang=1 in=root
		pods v 2
		pods u 1
		bound v=2 u=1
		pods alone 1 priority=high
		bound v=0 u=0 alone=1
		target v
		target u`},
	"P1639: no part of a minimum": {story: `
		nodes 1 1
		composite root gang=1
		group v gang=2 in=root
		pods v 2
		bound v=2
		pods alone 1 priority=high
		bound v=0 alone=1`,
		differs: "kube-scheduler evicts one of the two and lets the other run without its gang"},
	"P1688: the smaller of two": {story: `
		nodes 1 1 1
		group v gang=1
		pods v 1
		composite root gang=2
		group u gang=1 in=root
		group t gang=1 in=root
		pods u 1
		pods t 1
		bound v=1 u=1 t=1
		pods alone 1 priority=high
		bound v=0 u=1 t=1 alone=1`},
	"P1810, P1837: the topmost one that ends as a whole": {story: `
		nodes 1 1 1 1
		composite root gang=2
		composite n gang=2 in=root all
		group v gang=1 in=n
		group u gang=1 in=n
		group t gang=1 in=root
		group s gang=1 in=root
		pods v 1
		pods u 1
		pods t 1
		pods s 1
		bound v=1 u=1 t=1 s=1
		pods alone 1 priority=high
		either v=0,u=0,t=1,s=1 v=1,u=1,t=0,s=1 v=1,u=1,t=1,s=0`,
		differs: "kube-scheduler may take any unit; here only one above the minimum of the root"},

	// Queue.
	"Q361, Q403: a gated pod": {story: `
		nodes 1 1 1
		group a gang=2
		pods a 1 gated
		pods a 2
		bound a=2
		open a
		bound a=3`,
		differs: "kube-scheduler holds the whole group; a pod that may not start yet is none of the minimum, which others fill"},
	"Q445: a gated pod comes later": {story: `
		nodes 1
		group a gang=2
		pods a 2
		says a False Unschedulable
		pods a 1 gated
		nodes 1
		bound a=2`,
		differs: "as Q361"},
	"Q693, Q751, Q809: the group is deleted": {story: `
		nodes 1 1
		group a gang=2
		pods a 2
		bound a=2
		delete a
		bound a=2`},
	"Q1089: a leftover is behind a higher one": {story: `
		nodes 1
		group a gang=1
		pods a 2
		bound a=1
		pending a 1
		group b gang=1 priority=high
		pods b 1
		bound b=1 a=0`},

	// Bad input.
	"B1: claims of a group": {story: `
		group a gang=1 claims
		pods a 1
		event a GangNotMade spec.resourceClaims of PodGroup a cannot be obeyed`,
		differs: "claims that a group shares are not planned: the pods wait"},
	"B2: parents in a cycle": {story: `
		composite x gang=1 in=y
		composite y gang=1 in=x
		group a gang=1 in=x
		pods a 1
		event a GangNotMade form a cycle`},
	"B3: five levels": {story: `
		composite l1 gang=1
		composite l2 gang=1 in=l1
		composite l3 gang=1 in=l2
		composite l4 gang=1 in=l3
		group a gang=1 in=l4
		pods a 1
		event a GangNotMade Kubernetes has 4`},
	"B4: edits of what is immutable": {story: `
		nodes 1
		group a gang=1
		pods a 1
		bound a=1
		forbidden a {"spec": {"schedulingPolicy": {"gang": null, "basic": {}}}}
		forbidden a {"spec": {"disruptionMode": {"single": null, "all": {}}}}
		forbidden a {"spec": {"parentCompositePodGroupName": "b"}}
		bound a=1`},
	"B5: a minimum of none": {story: `
		refused group a gang=0
		refused composite b gang=0`},
}
