// SPDX-License-Identifier: Apache-2.0

package secret

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/scheduler/marks"
)

const ns = "muster-system"

// secret returns the Secret with these keys; the first one is the current key.
func secret(version string, ids ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: Name, ResourceVersion: version}}
	for i, id := range ids {
		if i == 0 {
			s.Data = map[string][]byte{currentEntry: []byte(id + "\n")}
		}
		s.Data[id] = []byte("a secret of sixteen bytes or more: " + id)
	}
	return s
}

// signer returns the keys of a scheduler with this Secret.
func signer(t *testing.T, s *corev1.Secret) *marks.Keys {
	t.Helper()
	keys, err := parseKeys(s)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

type fixture struct {
	*KeySource
	api  *fake.Clientset
	keys *marks.Keys
	sets int
}

func newFixture(objects ...runtime.Object) *fixture {
	f := &fixture{api: fake.NewClientset(objects...)}
	f.KeySource = NewKeySource(Options{Secrets: f.api.CoreV1().Secrets(ns), Clock: clock.RealClock{}, SetKeys: func(k *marks.Keys) { f.keys = k; f.sets++ }})
	return f
}

func (f *fixture) refuse(verb string, err error) {
	f.api.PrependReactor(verb, "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestReadOnce(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(corev1.Resource("secrets"), Name, errors.New("no"))
	type outcome struct {
		OK, Decided bool
		Keys        int
		Writes      int
	}
	for name, tc := range map[string]struct {
		found  *corev1.Secret
		refuse map[string]error
		leads  bool
		want   outcome
	}{
		"there are keys": {found: secret("1", "k1", "k0"), want: outcome{OK: true, Decided: true, Keys: 2}},
		"there are keys, and the scheduler leads":            {found: secret("1", "k1"), leads: true, want: outcome{OK: true, Decided: true, Keys: 1}},
		"no key: a standby waits":                            {found: secret("1"), want: outcome{}},
		"no key: the leader creates one":                     {found: secret("1"), leads: true, want: outcome{OK: true, Decided: true, Keys: 1, Writes: 1}},
		"Secret missing: a standby waits":                    {want: outcome{}},
		"Secret missing: the leader creates it":              {leads: true, want: outcome{OK: true, Decided: true, Keys: 1, Writes: 1}},
		"Secret missing, creation forbidden":                 {leads: true, refuse: map[string]error{"create": forbidden}, want: outcome{Decided: true, Writes: 1}},
		"no key, update forbidden":                           {found: secret("1"), leads: true, refuse: map[string]error{"update": forbidden}, want: outcome{Decided: true, Writes: 1}},
		"reading forbidden":                                  {refuse: map[string]error{"get": forbidden}, want: outcome{Decided: true}},
		"the API server is unavailable":                      {refuse: map[string]error{"get": errors.New("connection refused")}, want: outcome{}},
		"the API server is unavailable, the scheduler leads": {leads: true, refuse: map[string]error{"get": errors.New("connection refused")}, want: outcome{Decided: true}},
		"no current key named": {found: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: Name, ResourceVersion: "1"},
			Data: map[string][]byte{"k1": []byte("0123456789abcdef")}}, leads: true, want: outcome{Decided: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var objects []runtime.Object
			if tc.found != nil {
				objects = append(objects, tc.found)
			}
			f := newFixture(objects...)
			for verb, err := range tc.refuse {
				f.refuse(verb, err)
			}
			got := outcome{OK: f.readOnce(context.Background(), tc.leads), Decided: isClosed(f.KeysDecided()), Keys: f.keys.Len()}
			for _, a := range f.api.Actions() {
				if a.GetVerb() != "get" {
					got.Writes++
				}
			}
			if got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
			if !isClosed(f.FirstRead()) {
				t.Error("the first read has not ended")
			}
		})
	}
}

// Two replicas find no key. The second one reads the key that the first one wrote.
func TestTheKeyOfTheOtherReplicaIsRead(t *testing.T) {
	t.Parallel()
	for name, found := range map[string]*corev1.Secret{"made by both": nil, "written by both": secret("1")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var objects []runtime.Object
			if found != nil {
				objects = append(objects, found)
			}
			f := newFixture(objects...)
			theirs := secret("2", "theirs")
			lose := func(clienttesting.Action) (bool, runtime.Object, error) {
				if err := f.api.Tracker().Update(corev1.SchemeGroupVersion.WithResource("secrets"), theirs, ns); err != nil {
					if err := f.api.Tracker().Add(theirs); err != nil {
						t.Error(err)
					}
				}
				if found == nil {
					return true, nil, apierrors.NewAlreadyExists(corev1.Resource("secrets"), Name)
				}
				return true, nil, apierrors.NewConflict(corev1.Resource("secrets"), Name, errors.New("changed"))
			}
			f.api.PrependReactor("create", "secrets", lose)
			f.api.PrependReactor("update", "secrets", lose)
			if !f.readOnce(context.Background(), true) {
				t.Fatal("failed")
			}
			text := signer(t, theirs).SignMark("pod", marks.Mark{GroupUID: "group", PodCount: 1})
			if _, ok := f.keys.VerifyMark("pod", text); !ok {
				t.Error("the key is not the other replica's")
			}
		})
	}
}

func TestRunFollowsTheSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f := newFixture()
		leading := make(chan struct{})
		go f.Run(ctx, leading)
		synctest.Wait()
		if f.keys != nil || isClosed(f.KeysDecided()) {
			t.Fatal("a standby made a key, or gave up")
		}
		close(leading)
		<-f.KeysDecided()
		synctest.Wait()
		if f.keys.Len() != 1 {
			t.Fatalf("%d keys, want the one that the leader made", f.keys.Len())
		}

		// Rotation is detected by the next regular read, or a second after a mark with the new key was found.
		update := func(s *corev1.Secret) {
			t.Helper()
			if _, err := f.api.CoreV1().Secrets(ns).Update(ctx, s, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		update(secret("7", "k2", "k1"))
		time.Sleep(readInterval)
		synctest.Wait()
		if f.keys.Len() != 2 {
			t.Errorf("%d keys after the regular read, want 2", f.keys.Len())
		}
		update(secret("8", "k3", "k2", "k1"))
		for range 5 {
			f.RequestRead()
			synctest.Wait()
		}
		time.Sleep(requestedReadInterval)
		synctest.Wait()
		if f.keys.Len() != 3 {
			t.Errorf("%d keys a second after an unknown one was seen, want 3", f.keys.Len())
		}
		// An endless stream of unknown keys costs one read per second.
		f.api.ClearActions()
		for range 100 {
			f.RequestRead()
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if n := len(f.api.Actions()); n > 11 {
			t.Errorf("%d reads in 10 s", n)
		}
		// An invalid Secret changes nothing, and the same version is not processed twice.
		sets := f.sets
		update(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: Name, ResourceVersion: "9"}, Data: map[string][]byte{"current": []byte("k9")}})
		time.Sleep(2 * readInterval)
		synctest.Wait()
		if f.keys.Len() != 3 || f.sets != sets {
			t.Errorf("%d keys, set %d times more", f.keys.Len(), f.sets-sets)
		}
	})
}

func TestNamespace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ env, file, want string }{
		"of the environment":     {"a", "b", "a"},
		"of the service account": {"", "b\n", "b"},
		"neither":                {"", "", "muster-system"},
	} {
		got := namespace(func(string) string { return tc.env }, func(string) ([]byte, error) {
			if tc.file == "" {
				return nil, os.ErrNotExist
			}
			return []byte(tc.file), nil
		})
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
