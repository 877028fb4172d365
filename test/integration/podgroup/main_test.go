// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

// cluster is a control plane with Muster installed in it, without its webhook, shared by the tests of this package.
var cluster *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, controlplane.Options{}, &cluster, (*controlplane.ControlPlane).InstallMuster))
}

// user is a client that records the warnings that it receives.
type user struct {
	client.Client
	namespace string
	warnings  controlplane.Warnings
}

// newUser returns a client with a namespace of its own.
func newUser(t *testing.T) *user {
	t.Helper()
	u := &user{}
	config := cluster.Admin()
	config.WarningHandler = &u.warnings
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v2alpha2.AddToScheme(scheme))
	var err error
	if u.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "podgroup-"}}
	if err := u.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	u.namespace = namespace.Name
	return u
}

// onlyTheWebhookRefuses is a PodGroup that passes the CRD's rules.
func onlyTheWebhookRefuses(namespace string) *v2alpha2.PodGroup {
	return wrappers.MakePodGroup("probe", namespace).SubGroup("a", 1).Append(v2alpha2.SubGroup{Name: "b"}).Obj()
}

// waitForWebhook returns when the API server calls the webhook, or no longer does. The API server sends no event when
// it uses a new configuration, so this polls.
func waitForWebhook(t *testing.T, u *user, called bool) {
	t.Helper()
	var answer error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		answer = u.Create(ctx, onlyTheWebhookRefuses(u.namespace), client.DryRunAll)
		if answer != nil && !apierrors.IsInvalid(answer) {
			return false, nil
		}
		return (answer != nil) == called, nil
	})
	if err != nil {
		t.Fatalf("waiting for a webhook that is called: %t: %v; the API server says: %v", called, err, answer)
	}
	u.warnings.Take()
}

// check fails the test unless err is a rejection that contains all the parts, or nil if there are none.
func check(t *testing.T, err error, parts []string) {
	t.Helper()
	if len(parts) == 0 {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if err == nil {
		t.Error("accepted")
		return
	}
	if !apierrors.IsInvalid(err) {
		t.Errorf("refused, but not as invalid: %v", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("refusal does not say %q: %v", part, err)
		}
	}
}

// create creates a copy of the object in the user's namespace.
func (u *user) create(t *testing.T, pg *unstructured.Unstructured) error {
	t.Helper()
	pg = pg.DeepCopy()
	pg.SetNamespace(u.namespace)
	return u.Create(t.Context(), pg)
}

// apply applies a copy of the object in the user's namespace, server-side.
func (u *user) apply(t *testing.T, pg *unstructured.Unstructured, owner string) error {
	t.Helper()
	pg = pg.DeepCopy()
	pg.SetNamespace(u.namespace)
	return u.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(pg), client.FieldOwner(owner))
}

// typed converts the object to its type, as a client reads it.
func typed(t *testing.T, object *unstructured.Unstructured) *v2alpha2.PodGroup {
	t.Helper()
	pg := &v2alpha2.PodGroup{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, pg); err != nil {
		t.Fatal(err)
	}
	return pg
}

func yamlOf(t *testing.T, object any) []byte {
	t.Helper()
	content, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func decode(t *testing.T, content []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatal(err)
	}
}
