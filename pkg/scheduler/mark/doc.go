// Package mark makes and verifies the annotation that muster-scheduler leaves on every gang member it binds: which plan
// bound the pod, for which PodGroup, and what is needed to prove after a crash that the gang never was whole.
//
// Users who may patch pods can write any annotation. A mark is therefore signed with a key that only this installation of
// the scheduler has, and the signature covers the UID of the pod: a mark that was copied to another pod does not verify.
//
// The package is pure. It reads no key from anywhere; markkeys does.
package mark
