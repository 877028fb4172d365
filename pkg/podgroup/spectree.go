// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/apis/scheduling/validation"
	"github.com/muster-project/muster/pkg/gang"
)

// Tree returns the tree that a PodGroup's spec describes.
//
// It fails exactly when validation.ValidatePodGroup reports errors, including those that do not concern the tree (a
// required topology level that cannot be a node label): an invalid PodGroup that passed admission is never scheduled
// (docs/decisions, G7). The error contains the first problems with their field paths and is suitable for a condition.
func Tree(spec *v2alpha2.PodGroupSpec) (*gang.Tree, error) {
	tree, errs := validation.BuildTree(spec)
	if err := validation.CombineErrors(errs); err != nil {
		return nil, err
	}
	return tree, nil
}
