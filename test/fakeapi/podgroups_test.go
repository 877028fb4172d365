// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/fakeapi"
	"github.com/muster-project/muster/test/wrappers"
)

var train = types.NamespacedName{Namespace: "ml", Name: "train"}

func TestStatusIsUpdatedAsByAnAPIServer(t *testing.T) {
	t.Parallel()
	server := fakeapi.NewPodGroups()
	if _, err := server.UpdateStatus(t.Context(), wrappers.MakePodGroup("train", "ml").Obj()); !apierrors.IsNotFound(err) {
		t.Errorf("of what does not exist: %v, want not found", err)
	}
	server.Put(wrappers.MakePodGroup("train", "ml").UID("1").MinMember(1).Obj())
	stale := server.Get(train)
	group := server.Get(train)
	group.Status.Summary = "waits"
	if _, err := server.UpdateStatus(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	if _, err := server.UpdateStatus(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("of an old version: %v, want a conflict", err)
	}
	server.FailUpdates(errors.New("down"))
	if _, err := server.UpdateStatus(t.Context(), server.Get(train)); err == nil || err.Error() != "down" {
		t.Errorf("%v, want the error that was asked for", err)
	}
	server.Put(wrappers.MakePodGroup("train", "ml").UID("1").MinMember(2).Obj())
	if got := server.Get(train); got.Status.Summary != "waits" || *got.Spec.MinMember != 2 {
		t.Errorf("after a spec was replaced: summary %q, minMember %d", got.Status.Summary, *got.Spec.MinMember)
	}
	server.Put(wrappers.MakePodGroup("train", "ml").UID("2").MinMember(2).Obj())
	if got := server.Get(train).Status.Summary; got != "" {
		t.Errorf("another PodGroup of the name has the status %q", got)
	}
	if n := server.Updates(); n != 1 {
		t.Errorf("%d updates, want 1", n)
	}
}

// A watch begins with the events since the list.
func TestWatch(t *testing.T) {
	t.Parallel()
	server := fakeapi.NewPodGroups()
	url := server.Serve(t) + "/apis/" + v2alpha2.SchemeGroupVersion.String() + "/podgroups"
	server.Put(wrappers.MakePodGroup("train", "ml").UID("1").MinMember(1).Obj())
	var list v2alpha2.PodGroupList
	get(t, url, &list)
	if len(list.Items) != 1 || list.ResourceVersion != "1" {
		t.Fatalf("listed %d PodGroups at version %q, want 1 at 1", len(list.Items), list.ResourceVersion)
	}
	server.Put(wrappers.MakePodGroup("train", "ml").UID("1").MinMember(2).Obj())
	server.Delete(train)
	answer := open(t, url+"?watch=true&resourceVersion="+list.ResourceVersion)
	decoder := json.NewDecoder(answer.Body)
	for _, want := range []string{"MODIFIED", "DELETED", "ADDED"} {
		if want == "ADDED" {
			server.Put(wrappers.MakePodGroup("train", "ml").UID("2").MinMember(1).Obj())
		}
		var got metav1.WatchEvent
		if err := decoder.Decode(&got); err != nil || got.Type != want {
			t.Fatalf("%q (%v), want %q", got.Type, err, want)
		}
	}
}

func get(t *testing.T, url string, into any) {
	t.Helper()
	if err := json.NewDecoder(open(t, url).Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, url string) *http.Response {
	t.Helper()
	client := http.Client{Timeout: 30 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s", url, answer.Status)
	}
	return answer
}
