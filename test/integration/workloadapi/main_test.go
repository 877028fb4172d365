// SPDX-License-Identifier: Apache-2.0

package workloadapi

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

// cluster has Muster with its webhooks, shared by the tests of this package.
var cluster *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, controlplane.Options{}, &cluster, (*controlplane.ControlPlane).InstallMuster, serveWebhooks))
}

// serveWebhooks runs a muster-controller that never gets the lead: webhooks are
// served by every replica, the controllers run on the leader only.
func serveWebhooks(cp *controlplane.ControlPlane, ctx context.Context) error {
	_, err := webhookServer(cp, ctx)
	return err
}

func webhookServer(cp *controlplane.ControlPlane, ctx context.Context) (*controlplane.Process, error) {
	now := metav1.NowMicro()
	_, err := cp.Client().CoordinationV1().Leases(controlplane.MusterNamespace).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "muster-controller"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr("somebody else"), LeaseDurationSeconds: ptr(int32(24 * 3600)),
			AcquireTime: &now, RenewTime: &now},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return cp.StartMusterController(ctx, controlplane.ControllerOptions{Args: []string{"--leader-elect=true", "--scheduler-name=configured"}})
}

func ptr[T any](v T) *T { return &v }

// user is a client that records the warnings that it receives.
type user struct {
	client.Client
	t         *testing.T
	namespace string
	warnings  controlplane.Warnings
}

// newUser returns a client with a namespace of its own.
func newUser(t *testing.T, cp *controlplane.ControlPlane) *user {
	t.Helper()
	u := &user{t: t}
	config := cp.Admin()
	config.WarningHandler = &u.warnings
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	var err error
	if u.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "workloadapi-"}}
	if err := u.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	u.namespace = namespace.Name
	return u
}

// read returns the one object of a YAML text, in the user's namespace.
func (u *user) read(content string) *unstructured.Unstructured {
	u.t.Helper()
	objects, err := controlplane.ParseManifests([]byte(content))
	if err != nil || len(objects) != 1 {
		u.t.Fatalf("%d objects, %v in\n%s", len(objects), err, content)
	}
	objects[0].SetNamespace(u.namespace)
	return objects[0]
}

// apply applies the object server-side and returns the resulting object.
func (u *user) apply(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	applied := object.DeepCopy()
	err := u.Apply(u.t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("user"), client.ForceOwnership)
	return applied, err
}

// create creates an object, whose status is written too.
func (u *user) create(object client.Object) {
	u.t.Helper()
	object.SetNamespace(u.namespace)
	if err := u.Create(u.t.Context(), object); err != nil {
		u.t.Fatal(err)
	}
}

// scale writes the scale subresource.
func (u *user) scale(object client.Object, replicas int32) error {
	return u.SubResource("scale").Update(u.t.Context(), object, client.WithSubResourceBody(&autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: object.GetName(), Namespace: object.GetNamespace()},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
	}))
}

// readScale reads the scale subresource.
func (u *user) readScale(object client.Object) *autoscalingv1.Scale {
	u.t.Helper()
	scale := &autoscalingv1.Scale{}
	if err := u.SubResource("scale").Get(u.t.Context(), object, scale); err != nil {
		u.t.Fatal(err)
	}
	return scale
}

// patch applies a JSON merge patch and returns the answer.
func (u *user) patch(object client.Object, patch string) error {
	return u.Patch(u.t.Context(), object.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", []byte(patch)))
}

// check fails the test unless err is a rejection as invalid that contains all the parts, or nil if there are none.
func check(t *testing.T, err error, parts ...string) {
	t.Helper()
	if len(parts) == 0 || parts[0] == "" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if err == nil {
		t.Errorf("accepted, want a refusal with %q", parts)
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

// service is a valid PodCliqueSet as YAML; each replacement is a pair of texts.
func service(replacements ...string) string {
	text := `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: svc
spec:
  replicas: 1
  template:
    cliques:
    - name: frontend
      spec:
        replicas: 3
        podSpec: {containers: [{name: main, image: none}]}
    - name: leader
      spec:
        replicas: 1
        podSpec: {containers: [{name: main, image: none}]}
    - name: worker
      spec:
        replicas: 4
        minAvailable: 2
        podSpec: {containers: [{name: main, image: none}]}
    podCliqueScalingGroups:
    - name: decode
      cliqueNames: [leader, worker]
      replicas: 2
`
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(text, replacements[i]) {
			panic(fmt.Sprintf("nothing to replace: %q", replacements[i]))
		}
		text = strings.Replace(text, replacements[i], replacements[i+1], 1)
	}
	return text
}

// family creates a PodCliqueSet with the children that muster-controller would create, with the fields that admission
// checks.
func (u *user) family(pcs *v1alpha1.PodCliqueSet) (group *v1alpha1.PodCliqueScalingGroup, standalone, member *v1alpha1.PodClique) {
	u.t.Helper()
	u.create(pcs)
	owned := func(name, template string, owner client.Object, kind string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: u.namespace,
			Labels: map[string]string{v1alpha1.LabelPartOf: pcs.Name, v1alpha1.LabelTemplateName: template, v1alpha1.LabelPodCliqueSetReplicaIndex: "0"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind,
				Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr(true)}}}
	}
	template := pcs.Spec.Template
	group = &v1alpha1.PodCliqueScalingGroup{ObjectMeta: owned(pcs.Name+"-0-decode", "decode", pcs, v1alpha1.KindPodCliqueSet),
		Spec: v1alpha1.PodCliqueScalingGroupSpec{Replicas: 2, CliqueNames: []string{"leader", "worker"}, MinAvailable: template.PodCliqueScalingGroupConfigs[0].MinAvailable}}
	u.create(group)
	standalone = &v1alpha1.PodClique{ObjectMeta: owned(pcs.Name+"-0-frontend", "frontend", pcs, v1alpha1.KindPodCliqueSet), Spec: *template.Cliques[0].Spec.DeepCopy()}
	u.create(standalone)
	member = &v1alpha1.PodClique{ObjectMeta: owned(pcs.Name+"-0-decode-0-worker", "worker", group, v1alpha1.KindPodCliqueScalingGroup), Spec: *template.Cliques[2].Spec.DeepCopy()}
	u.create(member)
	return group, standalone, member
}

// typed returns the service as an object.
func (u *user) typed(replacements ...string) *v1alpha1.PodCliqueSet {
	u.t.Helper()
	pcs := &v1alpha1.PodCliqueSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.read(service(replacements...)).Object, pcs); err != nil {
		u.t.Fatal(err)
	}
	return pcs
}

// separate starts a control plane with the CRDs and without webhooks.
func separate(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cp, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cp.Stop)
	if err := cp.InstallMuster(ctx); err != nil {
		t.Fatal(err)
	}
	return cp
}
