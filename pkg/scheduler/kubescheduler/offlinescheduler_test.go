// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerprofile "k8s.io/kubernetes/pkg/scheduler/profile"
)

// A scheduler without a cluster would wait for ever for a kind that is not among OfflineKinds.
func TestOfflineKindsAreAllThatTheStockSchedulerReads(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	factory := scheduler.NewInformerFactory(client, 0, nil)
	recorders := schedulerprofile.NewRecorderFactory(events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()}))
	if _, err := scheduler.New(t.Context(), client, factory, nil, recorders); err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	known := sets.New[reflect.Type]()
	for _, kind := range OfflineKinds {
		known.Insert(reflect.TypeOf(kind))
	}
	read := factory.WaitForCacheSync(t.Context().Done())
	for kind := range read {
		if !known.Has(kind) {
			t.Errorf("the stock scheduler reads %s", kind)
		}
	}
	if len(read) < 10 {
		t.Errorf("it reads %d kinds only", len(read))
	}
}
