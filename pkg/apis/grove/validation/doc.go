// SPDX-License-Identifier: Apache-2.0

// Package validation validates PodCliqueSets, PodCliqueScalingGroups and PodCliques, and changes of them. It returns
// all errors together, each with the path of its field, and warnings about fields that are accepted but have no
// effect. The package is pure: the webhooks and the controllers call the same functions.
//
// SetDefaults defines what an unset field means. The functions of this package apply it to a copy first, so that an
// object that bypassed admission is validated like any other. Other objects that a change depends on are passed in an
// OwnerContext.
//
// The CRDs repeat, in CEL, the rules that must hold without the webhook: immutable fields, and minAvailable as the
// lower limit of replicas.
package validation
