// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	fwk "k8s.io/kube-scheduler/framework"
)

// NewBindingClient returns a client that has connections of its own. Clients with the same configuration share one
// connection otherwise, also with the informers: the events of their watches, which are sent one after the other, wait
// there for a turn among a hundred bindings each, and the scheduler learns of a new pod up to a second later.
func NewBindingClient(config *rest.Config) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext // client-go's default
	}
	return kubernetes.NewForConfig(config) // transports with a dialer are not shared
}

// Bind posts a pod's binding through the client as the stock binder does, with annotations, which the API server merges
// into the pod.
func Bind(ctx context.Context, handle fwk.Handle, client kubernetes.Interface, pod *corev1.Pod, node string, annotations map[string]string) error {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Annotations: annotations},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	if cacher := handle.APICacher(); cacher != nil {
		done, err := cacher.BindPod(binding)
		if err != nil {
			return err
		}
		return cacher.WaitOnFinish(ctx, done)
	}
	return client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
}
