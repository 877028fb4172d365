// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// objects are the objects that muster-controller created for a workload.
type objects struct {
	pods     []corev1.Pod
	services []corev1.Service
	others   map[schema.GroupVersionResource][]unstructured.Unstructured
}

// read returns the objects, in the form in which a plain client can create them.
func (w *workload) read(ctx context.Context) (*objects, error) {
	made := &objects{others: map[schema.GroupVersionResource][]unstructured.Unstructured{}}
	pods, err := w.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	made.pods = pods.Items
	found, err := w.client.CoreV1().Services(namespace).List(ctx, metav1.ListOptions{LabelSelector: ours})
	if err != nil {
		return nil, err
	}
	made.services = found.Items
	for _, kind := range []schema.GroupVersionResource{podGroups, podCliques} {
		list, err := w.dynamic.Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		made.others[kind] = list.Items
		for _, o := range list.Items {
			o.SetOwnerReferences(nil)
			o.SetResourceVersion("")
			o.SetUID("")
			o.SetManagedFields(nil)
			delete(o.Object, "status")
		}
	}
	for i := range made.services {
		s := &made.services[i]
		s.ObjectMeta = metav1.ObjectMeta{Name: s.Name, Labels: s.Labels}
	}
	for i := range made.pods {
		p := &made.pods[i]
		p.ObjectMeta = metav1.ObjectMeta{Name: p.Name, Labels: p.Labels, Annotations: p.Annotations}
		p.Status = corev1.PodStatus{}
		p.Spec.SchedulerName = "nobody"
	}
	return made, nil
}

// floor creates the same objects with a plain client, which binds each pod after its creation to the node that muster
// chose, and deletes all of them, one by one.
func (w *workload) floor(ctx context.Context, made *objects) ([]stepResult, error) {
	create, err := w.measured(ctx, "create", func(out *outcome, began time.Time) error {
		for _, kind := range []schema.GroupVersionResource{podGroups, podCliques} {
			if err := inParallel(len(made.others[kind]), func(i int) error {
				_, err := w.dynamic.Resource(kind).Namespace(namespace).Create(ctx, &made.others[kind][i], metav1.CreateOptions{})
				return err
			}); err != nil {
				return err
			}
		}
		if err := inParallel(len(made.services), func(i int) error {
			_, err := w.client.CoreV1().Services(namespace).Create(ctx, &made.services[i], metav1.CreateOptions{})
			return err
		}); err != nil {
			return err
		}
		if err := inParallel(len(made.pods), func(i int) error {
			pod := made.pods[i].DeepCopy()
			node := pod.Spec.NodeName
			pod.Spec.NodeName = ""
			if _, err := w.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				return err
			}
			return w.client.CoreV1().Pods(namespace).Bind(ctx, &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
			}, metav1.CreateOptions{})
		}); err != nil {
			return err
		}
		return w.untilPods(ctx, out, podsReady, began, func(c podCounts) bool { return c.ready == len(made.pods) })
	})
	if err != nil || !slices.Contains(w.o.variants, variant{kind: "zero"}) {
		return []stepResult{create}, err
	}
	zero, err := w.measured(ctx, "zero", func(out *outcome, began time.Time) error {
		if err := inParallel(len(made.pods), func(i int) error {
			return w.client.CoreV1().Pods(namespace).Delete(ctx, made.pods[i].Name, metav1.DeleteOptions{})
		}); err != nil {
			return err
		}
		if err := inParallel(len(made.services), func(i int) error {
			return w.client.CoreV1().Services(namespace).Delete(ctx, made.services[i].Name, metav1.DeleteOptions{})
		}); err != nil {
			return err
		}
		for kind, all := range made.others {
			if err := inParallel(len(all), func(i int) error {
				return w.dynamic.Resource(kind).Namespace(namespace).Delete(ctx, all[i].GetName(), metav1.DeleteOptions{})
			}); err != nil {
				return err
			}
		}
		if err := w.untilDown(ctx, 0, out, began); err != nil {
			return err
		}
		out.add(settled, since(began, time.Now()))
		return nil
	})
	return []stepResult{create, zero}, err
}
