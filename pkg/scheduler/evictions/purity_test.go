// SPDX-License-Identifier: Apache-2.0

package evictions

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

func TestPure(t *testing.T) {
	purity.Check(t, "slices", "time", "k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/types", "k8s.io/apimachinery/pkg/util/sets",
		"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2", "github.com/muster-project/muster/pkg/podgroup", "github.com/muster-project/muster/pkg/scheduler/reservations")
}
