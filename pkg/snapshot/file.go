// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The version of the file. A program reads the versions that it knows, and fields are not removed within one.
const (
	APIVersion = "muster-project/v1"
	headerKind = "Snapshot"
	endKind    = "End"
)

// limits bound what is read of a file, and so the memory that it takes.
type limits struct {
	line    int   // bytes of JSON of an object
	size    int64 // bytes of JSON of all objects
	objects int
}

// fileLimits are several times what a cluster of 5,000 nodes and 40,000 pods has.
var fileLimits = limits{line: 16 << 20, size: 1 << 30, objects: 500_000}

// MaxFile is the size of a file, in bytes, above which it is not worth reading.
const MaxFile = 256 << 20

// header is the first line.
type header struct {
	metav1.TypeMeta `json:",inline"`
	Taken           time.Time `json:"taken"`
	Server          string    `json:"server,omitempty"`
	By              string    `json:"by,omitempty"`
	Unread          []Unread  `json:"unread,omitempty"`
}

// end is the last line.
type end struct {
	metav1.TypeMeta `json:",inline"`
	Objects         int `json:"objects"`
}

// Write writes the snapshot.
func (s *Snapshot) Write(w io.Writer) error {
	zip, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(zip)
	meta := metav1.TypeMeta{Kind: headerKind, APIVersion: APIVersion}
	if err := lines.Encode(header{meta, s.Taken, s.Server, s.By, s.Unread}); err != nil {
		return err
	}
	kinds := map[string]schema.GroupVersionKind{}
	for i := range Kinds {
		kinds[fmt.Sprintf("%T", Kinds[i].new())] = Kinds[i].GroupVersionKind
	}
	for _, object := range s.Objects {
		kind, ok := kinds[fmt.Sprintf("%T", object)]
		if !ok {
			return fmt.Errorf("writing a snapshot: %T is no kind of it", object)
		}
		object.GetObjectKind().SetGroupVersionKind(kind) // lists of the API server do not repeat it
		if err := lines.Encode(object); err != nil {
			return fmt.Errorf("writing a snapshot: %w", err)
		}
	}
	if err := lines.Encode(end{metav1.TypeMeta{Kind: endKind}, len(s.Objects)}); err != nil {
		return err
	}
	return zip.Close()
}

// Read reads a snapshot that Write has written. Errors say what is wrong with the file.
func Read(r io.Reader) (*Snapshot, error) { return read(r, fileLimits) }

func read(r io.Reader, most limits) (*Snapshot, error) {
	zip, err := gzip.NewReader(bufio.NewReaderSize(r, 1<<16))
	if err != nil {
		return nil, errors.New("it is no snapshot of kubectl muster: it is not compressed with gzip")
	}
	lines := bufio.NewScanner(io.LimitReader(zip, most.size+1))
	lines.Buffer(make([]byte, 1<<16), most.line)
	if !lines.Scan() {
		return nil, cutOff(lines.Err(), 0)
	}
	var h header
	if err := json.Unmarshal(lines.Bytes(), &h); err != nil || h.Kind != headerKind {
		return nil, errors.New("it is no snapshot of kubectl muster: its first line is not that of one")
	}
	if h.APIVersion != APIVersion {
		return nil, fmt.Errorf("it has version %s, this program reads %s: use the kubectl-muster that took it, or a newer one", h.APIVersion, APIVersion)
	}
	d := newDecoder()
	size, objects := int64(len(lines.Bytes()))+1, 0
	for lines.Scan() {
		size, objects = size+int64(len(lines.Bytes()))+1, objects+1
		if size > most.size || objects > most.objects+1 {
			_, _, _ = d.finish()
			return nil, fmt.Errorf("it has more than %d MiB, or %d objects: no snapshot is that large", most.size>>20, most.objects)
		}
		d.add(bytes.Clone(lines.Bytes()))
	}
	all, last, err := d.finish()
	switch {
	case lines.Err() != nil:
		return nil, cutOff(lines.Err(), len(all))
	case err != nil:
		return nil, err
	case last == nil || last.Objects != len(all):
		return nil, cutOff(nil, len(all))
	}
	return &Snapshot{Taken: h.Taken, Server: h.Server, By: h.By, Unread: h.Unread, Objects: all}, nil
}

// cutOff returns the error of a file that ends early, or is damaged, after so many objects.
func cutOff(err error, objects int) error {
	if err == nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("it is cut off after %d objects: copy it again", objects)
	}
	return fmt.Errorf("it is damaged after %d objects: %w", objects, err)
}

// decoder decodes lines on all processors.
type decoder struct {
	kinds   map[metav1.TypeMeta]*Kind
	batches chan batch
	workers sync.WaitGroup
	next    batch
	n       int

	mu      sync.Mutex
	results [][]kruntime.Object // by batch; guarded by mu
	last    *end                // guarded by mu
	err     error               // guarded by mu: the first one
}

// batch are lines that are decoded together.
type batch struct {
	n     int
	lines [][]byte
}

const batchLines = 256

func newDecoder() *decoder {
	d := &decoder{kinds: map[metav1.TypeMeta]*Kind{}, batches: make(chan batch, 2*runtime.GOMAXPROCS(0))}
	for i := range Kinds {
		k := &Kinds[i]
		d.kinds[metav1.TypeMeta{Kind: k.Kind, APIVersion: k.GroupVersion().String()}] = k
	}
	for range runtime.GOMAXPROCS(0) {
		d.workers.Go(func() {
			for b := range d.batches {
				d.decode(b)
			}
		})
	}
	return d
}

func (d *decoder) add(line []byte) {
	if d.next.lines = append(d.next.lines, line); len(d.next.lines) == batchLines {
		d.flush()
	}
}

func (d *decoder) flush() {
	d.mu.Lock()
	d.results = append(d.results, nil)
	d.mu.Unlock()
	d.next.n = d.n
	d.batches <- d.next
	d.next, d.n = batch{}, d.n+1
}

// finish returns the objects in order, and the last line; nil: it is missing.
func (d *decoder) finish() ([]kruntime.Object, *end, error) {
	d.flush()
	close(d.batches)
	d.workers.Wait()
	var all []kruntime.Object
	for _, objects := range d.results {
		all = append(all, objects...)
	}
	return all, d.last, d.err
}

func (d *decoder) decode(b batch) {
	objects := make([]kruntime.Object, 0, len(b.lines))
	var last *end
	var failed error
	for _, line := range b.lines {
		object, e, err := d.decodeLine(line)
		switch {
		case err != nil:
			failed = err
		case e != nil:
			last = e
		case object != nil:
			objects = append(objects, object)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.results[b.n] = objects
	if last != nil {
		d.last = last
	}
	if d.err == nil {
		d.err = failed
	}
}

// decodeLine returns the object of a line, or the end.
func (d *decoder) decodeLine(line []byte) (client.Object, *end, error) {
	var meta metav1.TypeMeta
	if kind, version, ok := typeOf(line); ok {
		meta = metav1.TypeMeta{Kind: kind, APIVersion: version}
	} else if err := json.Unmarshal(line, &meta); err != nil {
		return nil, nil, fmt.Errorf("it is damaged: a line is no JSON: %w", err)
	}
	if meta.Kind == endKind {
		var e end
		err := json.Unmarshal(line, &e)
		return nil, &e, err
	}
	kind := d.kinds[meta]
	if kind == nil {
		return nil, nil, fmt.Errorf("it has objects of kind %s (%s), which this program does not know: use a newer one", meta.Kind, meta.APIVersion)
	}
	object := kind.new()
	if err := json.Unmarshal(line, object); err != nil {
		return nil, nil, fmt.Errorf("it is damaged: a %s cannot be read: %w", meta.Kind, err)
	}
	return object, nil, nil
}

// typeOf returns kind and apiVersion of a line that begins with them, as Write writes it, without reading the rest.
func typeOf(line []byte) (kind, version string, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"kind":"`))
	if !ok {
		return "", "", false
	}
	k, rest, ok := bytes.Cut(rest, []byte(`","apiVersion":"`))
	if !ok {
		return "", "", false
	}
	v, _, ok := bytes.Cut(rest, []byte(`"`))
	return string(k), string(v), ok && !bytes.ContainsAny(k, `"\`) && !bytes.Contains(v, []byte(`\`))
}
