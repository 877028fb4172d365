// SPDX-License-Identifier: Apache-2.0

package children

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/test/wrappers"
)

func TestMemory(t *testing.T) {
	var m PassMemory[int]
	clique := wrappers.MakePodClique("web", 0, "main", "ml").UID("1").Obj()
	seven := func() int { return 7 }
	*m.Of(clique, seven)++
	if got := *m.Of(clique, seven); got != 8 {
		t.Errorf("%d after a change, want 8", got)
	}
	if got := *m.Of(wrappers.MakePodClique("web", 0, "main", "ml").UID("2").Obj(), seven); got != 7 {
		t.Errorf("%d for another object of the name, want 7", got)
	}
	if got := *m.Of(wrappers.MakePodClique("web", 0, "main", "other").UID("1").Obj(), nil); got != 0 {
		t.Errorf("%d without an initial value, want 0", got)
	}
	if m.Len() != 2 {
		t.Errorf("%d objects, want 2", m.Len())
	}
	m.Forget(client.ObjectKeyFromObject(clique))
	m.Forget(types.NamespacedName{Namespace: "ml", Name: "unknown"})
	if m.Len() != 1 {
		t.Errorf("%d objects after one is gone, want 1", m.Len())
	}
}
