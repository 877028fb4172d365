// SPDX-License-Identifier: Apache-2.0

package main

// differences are the tests that say something else of muster-scheduler, each with the decision. "open": there is none.
var differences = []difference{
	differs("preemption", `TestPreemption/basic_pod_preemption_with_(filter|preFilter)_.*`,
		"a filter of the test admits as many calls as it has tokens, and a search for victims asks filters in another order and number (docs/decisions, G22)"),
	differs("preemption/misc", `TestDisablePreemption/pod_preemption_will_not_happen_.*`,
		"a profile cannot turn preemption off at postFilter: GangAdmission preempts for all pods (docs/decisions, G15); preemptionPolicy: Never does"),
	differs("eventhandler", `TestUpdateNominatedNodeName/Preempt_nominated_pod_.*`,
		"the nominated pod of the test is bound before its back-off of a minute has passed, since its victim has ended (docs/decisions, G15), and then ends in its grace period"),
	differs("plugins", `TestQueueSortPlugin/.*`, secondQueueSort),
	differs("nominated_node_name", `TestSchedulerRestartWithNominatedNode`, secondQueueSort),
	differs("extender", `TestSchedulerExtender`,
		"an extender that binds pods is refused at the start (docs/decisions, G17)"),
}

const secondQueueSort = "a second plugin at queueSort is refused: GangAdmission orders the queue (docs/decisions, G16)"
