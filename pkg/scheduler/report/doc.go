// Package report tells users how their gangs are: it writes the status of PodGroups, events, and the condition
// PodScheduled of pods that are held.
//
// It never decides anything. Whoever changes something about a gang marks it (Mark, cheap); workers outside the
// scheduling loop then ask the registry for the facts, let package podgroup make the status of them, and write what
// differs from what the API server has. Only this package writes to PodGroups (docs/decisions, G14).
//
// Every write has to earn its place beside the bindings, so:
//
//   - marks of 25 ms are taken together, and a status is written at once only if what a client may wait for has changed
//     (a condition's status, or a reason that lasts); what passes by itself (Binding, BehindInQueue, WaitingForPods) and
//     counts wait for StatusInterval, a PodGroup's first status of that kind for 0.2 s, and the numbers of a refusal,
//     which move with every attempt, for 30 s;
//   - one event per gang and change of reason, two seconds after the change, so that a cascade of them makes one, and only once
//     the status that it is about has been written;
//   - one patch per pod and reason, and one event for the pods of a leaf.
package report
