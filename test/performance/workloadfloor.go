// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// read returns the objects that muster-controller created for a workload, in the form and order in which a plain client can
// create them. Pods have the node that muster chose.
func (w *workload) read(ctx context.Context) ([]client.Object, error) {
	var made []client.Object
	for _, list := range []client.ObjectList{&v2alpha2.PodGroupList{}, &v1alpha1.PodCliqueList{}, &corev1.ServiceList{}, &corev1.PodList{}} {
		if err := w.objects.List(ctx, list, client.InNamespace(namespace), ours); err != nil {
			return nil, err
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			m := object.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
			*m = metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: m.Labels, Annotations: m.Annotations}
			switch o := object.(type) {
			case *v2alpha2.PodGroup:
				o.Status = v2alpha2.PodGroupStatus{}
			case *v1alpha1.PodClique:
				o.Status = v1alpha1.PodCliqueStatus{}
			case *corev1.Pod:
				o.Status, o.Spec.SchedulerName = corev1.PodStatus{}, "nobody"
			}
			made = append(made, object)
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// floor creates the same objects with a plain client, which binds each pod after its creation to the node that muster
// chose, and deletes all of them, one by one.
func (w *workload) floor(ctx context.Context, made []client.Object) ([]stepResult, error) {
	create, err := w.measured(ctx, "create", func(out *outcome, began time.Time) error {
		if err := inParallel(len(made), func(i int) error {
			if pod, ok := made[i].(*corev1.Pod); ok {
				return w.createBound(ctx, pod.DeepCopy())
			}
			return w.objects.Create(ctx, made[i].DeepCopyObject().(client.Object))
		}); err != nil {
			return err
		}
		return w.untilPods(ctx, out, podsReady, began, func(c podCounts) bool { return c.ready == w.o.workloadPods() })
	})
	if err != nil || !slices.Contains(w.o.variants, variant{kind: "zero"}) {
		return []stepResult{create}, err
	}
	zero, err := w.measured(ctx, "zero", func(out *outcome, began time.Time) error {
		if err := inParallel(len(made), func(i int) error { return w.objects.Delete(ctx, made[len(made)-1-i]) }); err != nil {
			return err
		}
		if err := w.untilDown(ctx, 0, out, began); err != nil {
			return err
		}
		out.add(settled, since(began, time.Now()))
		return nil
	})
	return []stepResult{create, zero}, err
}

// createBound creates a pod, and binds it to its node then.
func (w *workload) createBound(ctx context.Context, pod *corev1.Pod) error {
	b := binding{pod: pod.Name, node: pod.Spec.NodeName}
	pod.Spec.NodeName = ""
	if _, err := w.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	return w.bind(ctx, b)
}
