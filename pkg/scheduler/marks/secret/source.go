// SPDX-License-Identifier: Apache-2.0

package secret

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/scheduler/marks"
)

const (
	// Name is the name of the Secret.
	Name = "muster-scheduler-marks"
	// currentEntry is the entry of the Secret that contains the id of the signing key.
	currentEntry = "current"
	// secretSize is the length of a key created by this package, in bytes.
	secretSize = 32

	readInterval          = 30 * time.Second // between two reads
	retryInterval         = 5 * time.Second  // between two reads while there is no key
	requestedReadInterval = time.Second      // minimum time between a read and a read because of an unknown key
	readTimeout           = 5 * time.Second
)

// serviceAccountNamespace is the file that contains the namespace of this pod.
const serviceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Namespace returns the namespace of the Secret: the namespace of this process's pod according to POD_NAMESPACE or
// its service account, otherwise muster-system.
func Namespace() string { return namespace(os.Getenv, os.ReadFile) }

func namespace(getenv func(string) string, readFile func(string) ([]byte, error)) string {
	if ns := getenv("POD_NAMESPACE"); ns != "" {
		return ns
	}
	if content, err := readFile(serviceAccountNamespace); err == nil {
		if ns := strings.TrimSpace(string(content)); ns != "" {
			return ns
		}
	}
	return "muster-system"
}

// Options are the dependencies of a KeySource. All are required.
type Options struct {
	// Secrets accesses the Secret in its namespace.
	Secrets typedcorev1.SecretInterface
	Clock   clock.Clock
	// SetKeys is called with the keys whenever they have changed; the keys are never nil.
	SetKeys func(*marks.Keys)
}

// KeySource reads the keys and follows their rotation.
type KeySource struct {
	Options

	readRequests chan struct{}
	firstRead    chan struct{} // closed when the first read of the Secret has succeeded or failed
	keysDecided  chan struct{} // closed when there are keys, or it is known that there are none for now
	once         [2]sync.Once

	// Used only by Run.
	data        map[string][]byte // of the Secret with the current keys; nil = there are no keys
	lastProblem string            // last logged reason why there are no keys, or no new ones
}

// NewKeySource returns a KeySource.
func NewKeySource(o Options) *KeySource {
	return &KeySource{Options: o, readRequests: make(chan struct{}, 1), firstRead: make(chan struct{}), keysDecided: make(chan struct{})}
}

// RequestRead requests a read of the Secret soon. It never blocks.
func (s *KeySource) RequestRead() {
	select {
	case s.readRequests <- struct{}{}:
	default:
	}
}

// FirstRead is closed when the first read of the Secret has succeeded or failed.
func (s *KeySource) FirstRead() <-chan struct{} { return s.firstRead }

// KeysDecided is closed when there are keys, or when it is known that there are none for now because they cannot be
// read or created.
func (s *KeySource) KeysDecided() <-chan struct{} { return s.keysDecided }

// Run follows the keys until ctx ends. After leading is closed, it creates a key if there is none.
func (s *KeySource) Run(ctx context.Context, leading <-chan struct{}) {
	leads := false
	for {
		ok := s.readOnce(ctx, leads)
		last := s.Clock.Now()
		delay := readInterval
		if !ok {
			delay = retryInterval
		}
		timer := s.Clock.NewTimer(delay)
		for waiting := true; waiting; {
			select {
			case <-timer.C():
				waiting = false
			case <-leading:
				leads, leading, waiting = true, nil, false
			case <-s.readRequests:
				if !timer.Stop() {
					break
				}
				timer = s.Clock.NewTimer(max(0, last.Add(requestedReadInterval).Sub(s.Clock.Now())))
			case <-ctx.Done():
				timer.Stop()
				return
			}
		}
		timer.Stop()
	}
}

// errNoKey means that there is no key yet, and that another replica will create one.
var errNoKey = errors.New("the Secret has no key yet")

// readOnce reads the Secret once, and reports whether this succeeded.
func (s *KeySource) readOnce(ctx context.Context, leads bool) bool {
	logger := klog.FromContext(ctx)
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	secret, err := s.getOrCreateSecret(reading, leads)
	if err == nil && !maps.EqualFunc(secret.Data, s.data, bytes.Equal) {
		var keys *marks.Keys
		if keys, err = parseKeys(secret); err == nil {
			s.data = secret.Data
			s.SetKeys(keys)
			logger.Info("Signing the marks of bound pods", "secret", Name, "currentKey", string(secret.Data[currentEntry]), "keys", keys.Len())
		}
	}
	s.once[0].Do(func() { close(s.firstRead) })
	if s.data != nil || err != nil && (leads || apierrors.IsForbidden(err)) {
		s.once[1].Do(func() { close(s.keysDecided) })
	}
	switch {
	case err == nil:
		s.lastProblem = ""
	case errors.Is(err, errNoKey) || err.Error() == s.lastProblem:
	case s.data == nil:
		s.lastProblem = err.Error()
		logger.Error(err, "There is no key for the marks of bound pods: gangs are admitted, their bindings carry no mark, and partially bound gangs are not released", "secret", Name)
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || !isStatus(err):
		s.lastProblem = err.Error()
		logger.Error(err, "Failed to read the keys for the marks of bound pods again; the previous keys stay in use", "secret", Name)
	}
	return err == nil
}

// isStatus reports whether the error is an answer of the API server.
func isStatus(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// getOrCreateSecret returns the Secret with at least one key. If there is none and make is set, it creates one. Several
// replicas may try this: one succeeds, the others read the key that it wrote.
func (s *KeySource) getOrCreateSecret(ctx context.Context, make bool) (*corev1.Secret, error) {
	for attempt := 0; ; attempt++ {
		secret, err := s.Secrets.Get(ctx, Name, metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		switch {
		case err != nil && !missing:
			return nil, err
		case !missing && len(secret.Data) > 0:
			return secret, nil
		case !make:
			return nil, errNoKey
		}
		data := newKey()
		if missing {
			secret, err = s.Secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: Name}, Data: data}, metav1.CreateOptions{})
		} else {
			secret = secret.DeepCopy() // keep the resourceVersion: a concurrent update by another replica causes a conflict
			secret.Data = data
			secret, err = s.Secrets.Update(ctx, secret, metav1.UpdateOptions{})
		}
		if err == nil {
			return secret, nil
		}
		if attempt >= 2 || !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return nil, fmt.Errorf("creating the first key: %w", err)
		}
	}
}

// newKey returns the entries of a Secret with one key.
func newKey() map[string][]byte {
	secret, name := make([]byte, secretSize), make([]byte, 4)
	rand.Read(secret) // never fails
	rand.Read(name)
	id := "k-" + hex.EncodeToString(name)
	return map[string][]byte{id: secret, currentEntry: []byte(id)}
}

// parseKeys returns the keys of a Secret.
func parseKeys(secret *corev1.Secret) (*marks.Keys, error) {
	current, ok := secret.Data[currentEntry]
	if !ok {
		return nil, fmt.Errorf("the Secret has no entry %q with the id of the signing key", currentEntry)
	}
	secrets := maps.Clone(secret.Data)
	delete(secrets, currentEntry)
	return marks.NewKeys(strings.TrimSpace(string(current)), secrets)
}
