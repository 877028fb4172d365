// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Another product may have installed a CRD of the same name, whose schema prunes fields of Muster's: the scheduler logs
// that, is not ready and binds nothing, and continues when the CRD is replaced.
func TestNotReadyBesideTheCRDOfAnotherProduct(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.stillSchedules()
	c.scheduler.Kill()

	restore := c.replaceCRD()
	c.must(c.scheduler.Start(), "starting muster-scheduler")
	c.untilLogged("is not the one of this version of Muster: it lacks spec.minSubGroup")
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: 5 * time.Second}
	answer := func(path string) int {
		response, err := insecure.Get(strings.Replace(c.scheduler.ReadyURL, "/readyz", path, 1))
		c.must(err, "asking for "+path)
		defer response.Body.Close()
		return response.StatusCode
	}
	if ready, live := answer("/readyz"), answer("/healthz"); ready == http.StatusOK || live != http.StatusOK {
		t.Errorf("readyz answers %d, healthz %d; want not ready, and alive", ready, live)
	}
	c.createPlain("early")
	c.notBound("early")

	restore()
	c.must(c.scheduler.WaitReady(c.ctx), "waiting for muster-scheduler to be ready")
	c.untilPodBound("early")
	c.deleteGang("bystanders")
	c.delete("bystander")
	c.stillSchedules()
}

// replaceCRD removes minSubGroup from the CRD, and returns a function that restores it; it is also restored at the end
// of the test. Both return when the API server publishes the schema.
func (c *cluster) replaceCRD() (restore func()) {
	c.t.Helper()
	const name = "podgroups.scheduling.run.ai"
	original, err := c.dynamic.Resource(crds).Get(c.ctx, name, metav1.GetOptions{})
	c.must(err, "reading the CRD")
	const spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec"
	patch := fmt.Sprintf(`[{"op":"remove","path":%q},{"op":"remove","path":%q}]`, spec+"/x-kubernetes-validations", spec+"/properties/minSubGroup")
	_, err = c.dynamic.Resource(crds).Patch(c.ctx, name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	c.must(err, "replacing the CRD")
	restore = func() {
		ctx := context.Background()
		fields, _, err := unstructured.NestedMap(original.Object, "spec")
		c.must(err, "reading the CRD")
		c.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the API server writes the CRD's status
			now, err := c.dynamic.Resource(crds).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if err := unstructured.SetNestedMap(now.Object, fields, "spec"); err != nil {
				return err
			}
			_, err = c.dynamic.Resource(crds).Update(ctx, now, metav1.UpdateOptions{})
			return err
		}), "restoring the CRD")
		c.untilPublished(true)
	}
	c.t.Cleanup(restore)
	c.untilPublished(false)
	return restore
}

// untilPublished waits until the schema that the API server publishes has the field minSubGroup of the spec, or lacks
// it.
func (c *cluster) untilPublished(want bool) {
	c.t.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		document, err := cp.Client().Discovery().RESTClient().Get().AbsPath("/openapi/v3/apis/" + v2alpha2.SchemeGroupVersion.String()).Do(ctx).Raw()
		// Its description is that of the spec's field alone; sub-groups have one of their own.
		return err == nil && strings.Contains(string(document), "direct children (subGroups without a parent)") == want, nil
	})
	c.must(err, "waiting for the schema to be published")
}

// untilLogged waits until the scheduler's log contains the words.
func (c *cluster) untilLogged(words string) {
	c.t.Helper()
	err := wait.PollUntilContextTimeout(c.ctx, 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		log, err := os.ReadFile(c.scheduler.Log())
		return err == nil && strings.Contains(string(log), words), nil
	})
	c.must(err, "waiting for the log to say "+words)
}
