// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
)

// TestWaitContainerStartsOnARealNode checks the pod like the kubelet, which the simulated kubelets of the integration
// tests do not: whether it starts the waiting container, and whether that container can read its token.
func TestWaitContainerStartsOnARealNode(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pod       *corev1.PodSecurityContext
		container *corev1.SecurityContext // of the template's only container
	}{
		"no security context":                   {},
		"the pod runs as root":                  {pod: &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](0)}},
		"the pod must not run as root":          {pod: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)}, container: &corev1.SecurityContext{RunAsUser: ptr.To[int64](7)}},
		"the pod has a user":                    {pod: &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1000), RunAsGroup: ptr.To[int64](3000)}},
		"the pod has a group for its files":     {pod: &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1000), FSGroup: ptr.To[int64](2000)}},
		"the container has a user":              {container: &corev1.SecurityContext{RunAsUser: ptr.To[int64](1000)}},
		"the container has the waiting user":    {container: &corev1.SecurityContext{RunAsUser: ptr.To[int64](65532)}},
		"the pod has the waiting user":          {pod: &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](65532)}},
		"the pod has supplemental groups alone": {pod: &corev1.PodSecurityContext{SupplementalGroups: []int64{5}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := podCliqueSet(func(s *v1alpha1.PodCliqueSet) {
				s.Spec.Template.StartupType = ptr.To(v1alpha1.CliqueStartupTypeInOrder)
				for _, c := range s.Spec.Template.Cliques {
					c.Spec.PodSpec.SecurityContext = tc.pod.DeepCopy()
					c.Spec.PodSpec.Containers[0].SecurityContext = tc.container.DeepCopy()
				}
			})
			pod, err := Pod(apply(set, Children{}).Cliques["llm-0-prefill-0-prefill-worker"], lifecycle.NewPod{}, PodOptions{WaitImage: "wait:1"})
			if err != nil {
				t.Fatal(err)
			}
			wait := &pod.Spec.InitContainers[0]
			if wait.Name != v1alpha1.InitContainerName {
				t.Fatalf("the first init container is %s", wait.Name)
			}
			if err := verifyRunAsNonRoot(pod, wait); err != nil {
				t.Errorf("the kubelet does not start it: %v", err)
			}
			want := [2]*int64{ptr.To[int64](65532), ptr.To[int64](65532)}
			if diff := cmp.Diff(want, [2]*int64{effectiveUser(pod, wait), wait.SecurityContext.RunAsGroup}); diff != "" {
				t.Errorf("user and group (-want +got):\n%s", diff)
			}
			if !tokenIsReadable(pod, wait) {
				t.Error("it cannot read its token")
			}
			// The rest of the pod is as in the template.
			if diff := cmp.Diff(tc.pod, pod.Spec.SecurityContext); diff != "" {
				t.Errorf("security context of the pod (-template +pod):\n%s", diff)
			}
			if diff := cmp.Diff(tc.container, pod.Spec.Containers[0].SecurityContext); diff != "" {
				t.Errorf("security context of the container (-template +pod):\n%s", diff)
			}
		})
	}
}

// verifyRunAsNonRoot returns why the kubelet does not start a container of an image without USER, which is root, nil
// if it does. Source: verifyRunAsNonRoot in pkg/kubelet/kuberuntime/security_context.go of Kubernetes.
func verifyRunAsNonRoot(pod *corev1.Pod, container *corev1.Container) error {
	var nonRoot *bool
	if s := pod.Spec.SecurityContext; s != nil {
		nonRoot = s.RunAsNonRoot
	}
	if s := container.SecurityContext; s != nil && s.RunAsNonRoot != nil {
		nonRoot = s.RunAsNonRoot
	}
	switch user := effectiveUser(pod, container); {
	case nonRoot == nil || !*nonRoot:
		return nil
	case user != nil && *user == 0:
		return errors.New("container's runAsUser breaks non-root policy")
	case user == nil:
		return errors.New("container has runAsNonRoot and image will run as root")
	}
	return nil
}

// effectiveUser returns the container's runAsUser, else the pod's; nil means the image's. Source:
// DetermineEffectiveRunAsUser in pkg/securitycontext/util.go of Kubernetes.
func effectiveUser(pod *corev1.Pod, container *corev1.Container) *int64 {
	if s := container.SecurityContext; s != nil && s.RunAsUser != nil {
		return s.RunAsUser
	}
	if s := pod.Spec.SecurityContext; s != nil {
		return s.RunAsUser
	}
	return nil
}

// tokenIsReadable reports whether the container's user may read its token. The kubelet writes the file as root, with
// the volume's defaultMode, 0644 if it is unset. It makes it 0600 and gives it to the pod's user if all containers run
// as that one, or makes it readable to the pod's fsGroup, which all its containers are in, if there is one. Source:
// collectData in pkg/volume/projected/projected.go and FsUserFrom in pkg/volume/util/util.go of Kubernetes.
func tokenIsReadable(pod *corev1.Pod, container *corev1.Container) bool {
	if s := pod.Spec.SecurityContext; s != nil && s.FSGroup != nil {
		return true
	}
	var owner *int64
	same := true
	for _, c := range append(append([]corev1.Container(nil), pod.Spec.InitContainers...), pod.Spec.Containers...) {
		user := effectiveUser(pod, &c)
		same = same && user != nil && (owner == nil || *owner == *user)
		owner = user
	}
	if same {
		return *owner == *effectiveUser(pod, container)
	}
	for _, v := range pod.Spec.Volumes {
		if v.Name == container.VolumeMounts[0].Name {
			return v.Projected.DefaultMode == nil || *v.Projected.DefaultMode&0o004 != 0
		}
	}
	return false
}
