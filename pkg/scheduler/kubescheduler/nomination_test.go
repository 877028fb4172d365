// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/api_dispatcher"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/api_calls"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// dispatching is a framework whose calls to the API server are queued, as with feature gate SchedulerAsyncAPICalls.
type dispatching struct {
	framework.Framework
	client     kubernetes.Interface // not that of the informers, which know nothing of what is written
	dispatcher *apidispatcher.APIDispatcher
}

func (d dispatching) ClientSet() kubernetes.Interface { return d.client }

func (d dispatching) APICacher() fwk.APICacher { return cacher{dispatcher: d.dispatcher} }

type cacher struct {
	fwk.APICacher
	dispatcher *apidispatcher.APIDispatcher
}

func (c cacher) PatchPodStatus(pod *corev1.Pod, conditions []*corev1.PodCondition, nominating *fwk.NominatingInfo) (<-chan error, error) {
	done := make(chan error, 1)
	err := c.dispatcher.Add(apicalls.NewPodStatusPatchCall(pod, conditions, nominating), fwk.APICallOptions{OnFinish: done})
	if fwk.IsUnexpectedError(err) {
		return done, err
	}
	return done, nil
}

func TestQueuedNominationIsRemoved(t *testing.T) {
	metrics.Register()
	for name, written := range map[string]bool{"before it is written": false, "when it was written, and the informer has not seen it": true} {
		t.Run(name, func(t *testing.T) {
			pod := gangPod("a")
			c, client := newCluster(t, pod), fake.NewClientset(pod)
			f := dispatching{c.f, client, apidispatcher.New(client, 1, apicalls.Relevances)}
			patch := func(conditions []*corev1.PodCondition, nominating *fwk.NominatingInfo) <-chan error {
				done, err := f.APICacher().PatchPodStatus(pod, conditions, nominating)
				if err != nil {
					t.Fatal(err)
				}
				return done
			}
			nominated := patch(nil, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: "n"})
			defer f.dispatcher.Close()
			if written {
				f.dispatcher.Run(klog.Background())
				<-nominated
			}
			clearNomination(c.ctx, f, pod, "n")
			if written {
				pod = pod.DeepCopy()
				pod.Status.NominatedNodeName = "n" // the informer has seen it by now
			}
			last := patch([]*corev1.PodCondition{{Type: "Last", Status: corev1.ConditionTrue}}, nil)
			if !written {
				f.dispatcher.Run(klog.Background())
			}
			if err := <-last; err != nil {
				t.Fatal(err)
			}
			got, err := client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Status.NominatedNodeName != "" || len(got.Status.Conditions) != 1 {
				t.Errorf("status %v, want no node, and the condition", got.Status)
			}
		})
	}
}
