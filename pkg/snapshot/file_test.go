// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-project/muster/test/wrappers"
)

// example has more objects than fit into one batch.
func example() *Snapshot {
	s := &Snapshot{
		Taken: time.Date(2026, 11, 29, 7, 0, 0, 0, time.UTC), Server: "v1.36.3", By: "v0.1.0",
		Unread: []Unread{{Resource: "csinodes.storage.k8s.io", Why: WhyForbidden, Without: volumes}},
	}
	for i := range 3 * batchLines / 2 {
		s.Objects = append(s.Objects, wrappers.MakeNode(fmt.Sprintf("n-%03d", i)).GPUs(8).Obj())
	}
	s.Objects = append(s.Objects, wrappers.MakePod("p", "ml").Gang("g").GPUs(1).Obj(), wrappers.MakePodGroup("g", "ml").MinMember(1).Obj())
	return s
}

func written(t *testing.T, s *Snapshot) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	want := example()
	got, err := Read(bytes.NewReader(written(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("a snapshot that was written and read (-want +got):\n%s", diff)
	}
	if n := len(All[*corev1.Node](got)); n != 3*batchLines/2 {
		t.Errorf("%d nodes, want %d", n, 3*batchLines/2)
	}
}

func zipped(t *testing.T, lines ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadOfBadFiles(t *testing.T) {
	t.Parallel()
	whole := written(t, example())
	const first = `{"kind":"Snapshot","apiVersion":"` + APIVersion + `","taken":"2026-11-29T07:00:00Z"}`
	tests := map[string]struct {
		file []byte
		want string
	}{
		"an empty file":               {nil, "it is no snapshot of kubectl muster: it is not compressed with gzip"},
		"a file that is no gzip":      {[]byte("apiVersion: v1"), "it is no snapshot of kubectl muster: it is not compressed with gzip"},
		"nothing, compressed":         {zipped(t), "it is cut off after 0 objects: copy it again"},
		"other JSON":                  {zipped(t, `{"kind":"List","apiVersion":"v1"}`), "it is no snapshot of kubectl muster: its first line is not that of one"},
		"no JSON":                     {zipped(t, `hello`), "it is no snapshot of kubectl muster: its first line is not that of one"},
		"a newer version":             {zipped(t, `{"kind":"Snapshot","apiVersion":"muster-project/v2"}`), "it has version muster-project/v2, this program reads muster-project/v1: use the kubectl-muster that took it, or a newer one"},
		"half of a file":              {whole[:len(whole)/2], "it is cut off after"},
		"a file without its last KiB": {whole[:len(whole)-1], "it is cut off after"},
		"a file without its end":      {zipped(t, first), "it is cut off after 0 objects: copy it again"},
		"an end with more objects":    {zipped(t, first, `{"kind":"End","objects":3}`), "it is cut off after 0 objects: copy it again"},
		"an unknown kind":             {zipped(t, first, `{"kind":"Gadget","apiVersion":"x/v1"}`, `{"kind":"End","objects":1}`), "it has objects of kind Gadget (x/v1), which this program does not know: use a newer one"},
		"a line that is no JSON":      {zipped(t, first, `{"kind":`, `{"kind":"End","objects":1}`), "it is damaged: a line is no JSON"},
		"an object that is no object": {zipped(t, first, `{"kind":"Node","apiVersion":"v1","metadata":3}`, `{"kind":"End","objects":1}`), "it is damaged: a Node cannot be read"},
		"a line that is too long":     {zipped(t, first, `{"kind":"Node","apiVersion":"v1","x":"`+strings.Repeat("x", fileLimits.line)+`"}`), "it is damaged after 0 objects"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Read(bytes.NewReader(tc.file))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Read returned %v, %v, want an error that contains %q", s != nil, err, tc.want)
			}
		})
	}
}

// A file that unpacks to more than a cluster has is refused while it is read.
func TestReadOfLargeFiles(t *testing.T) {
	t.Parallel()
	const first = `{"kind":"Snapshot","apiVersion":"` + APIVersion + `","taken":"2026-11-29T07:00:00Z"}`
	for name, most := range map[string]limits{"bytes": {line: 1 << 10, size: 1 << 20, objects: 1 << 30}, "objects": {line: 1 << 10, size: 1 << 40, objects: 1000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read1, write1 := io.Pipe()
			go func() {
				zip := gzip.NewWriter(write1)
				_, err := io.WriteString(zip, first+"\n")
				for err == nil { // without an end
					_, err = io.WriteString(zip, `{"kind":"Node","apiVersion":"v1"}`+"\n")
				}
			}()
			_, err := read(read1, most)
			_ = read1.Close()
			if err == nil || !strings.Contains(err.Error(), "no snapshot is that large") {
				t.Errorf("Read returned %v", err)
			}
		})
	}
}

// What may be secret, or is large, and what no decision depends on, is not in a snapshot.
func TestStrip(t *testing.T) {
	t.Parallel()
	pod := wrappers.MakePod("p", "ml").GPUs(1).HostPort(80).Annotation(lastApplied, "{}").Annotation("pod-group-name", "g").Obj()
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	want := pod.DeepCopy()
	want.ManagedFields = nil
	delete(want.Annotations, lastApplied)
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: "secret"}}
	pod.Spec.Containers[0].Command = []string{"sh"}
	pod.Spec.Containers[0].Args = []string{"--token=secret"}
	for i := range Kinds {
		if Kinds[i].Kind == "Pod" {
			Kinds[i].stripObject(pod)
		}
	}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("a stripped pod (-want +got):\n%s", diff)
	}
}

// Objects of all kinds can be written, and the scheme has them.
func TestKinds(t *testing.T) {
	t.Parallel()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	var all []runtime.Object
	for i := range Kinds {
		k := &Kinds[i]
		if !scheme.Recognizes(k.GroupVersionKind) {
			t.Errorf("the scheme does not have %s", k.GroupVersionKind)
		}
		object := k.new()
		object.SetName("x")
		k.stripObject(object)
		all = append(all, object)
	}
	got, err := Read(bytes.NewReader(written(t, &Snapshot{Objects: all})))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Objects) != len(Kinds) {
		t.Errorf("%d objects were read, want one of each of the %d kinds", len(got.Objects), len(Kinds))
	}
}
