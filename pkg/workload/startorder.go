// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
)

// Arguments of the program in the waiting init container.
const (
	// WaitArgRequirements precedes the text of lifecycle.FormatRequirements.
	WaitArgRequirements = "--requirements="
	// WaitArgSet and WaitArgReplica select the PodCliques and PodCliqueScalingGroups to watch: naming.OfSetReplica.
	WaitArgSet     = "--podcliqueset="
	WaitArgReplica = "--replica-index="
)

const (
	waitTokenVolume = "grove-start-token"
	// waitTokenPath is the path that in-cluster configuration reads the token from. The service account admission adds
	// no token to a container that mounts a volume at this path, even if the pod requests none.
	waitTokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"
	// waitTokenSeconds is the lifetime that the service account admission requests too. The kubelet renews the token
	// of a pod that waits longer.
	waitTokenSeconds = 3607
	// waitUser is the user and the group that the waiting container runs as, regardless of the rest of the pod: with
	// runAsNonRoot the kubelet rejects a container whose user, or whose image's user, is root. The images of Muster's
	// programs have it as USER. The container can read the token: the kubelet makes the files of the volume readable
	// to all users, unless every container of the pod runs as one user, which is then this one, or the pod has an
	// fsGroup, to which every container belongs.
	waitUser = 65532
)

// addWaitContainer inserts the container that waits for other cliques before all other init containers, with a
// projected token. Source: docs/decisions, W8. Its request equals its limit, so that a Guaranteed pod stays
// Guaranteed. The request is smaller than that of any serving container with requests, so that the requests of such a
// pod do not change. A pod without requests gets this request, and becomes Burstable.
func addWaitContainer(spec *corev1.PodSpec, set string, i int, requirements []lifecycle.Requirement, o PodOptions) {
	yes, no := true, false
	user, seconds := int64(waitUser), int64(waitTokenSeconds)
	small := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("50m"),
		corev1.ResourceMemory: resource.MustParse("64Mi"),
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{
		Name: waitTokenVolume,
		VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &seconds}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		}}},
	})
	wait := corev1.Container{
		Name:  v1alpha1.InitContainerName,
		Image: o.WaitImage,
		Args: []string{
			WaitArgSet + set,
			WaitArgReplica + text(int32(i)),
			WaitArgRequirements + lifecycle.FormatRequirements(requirements),
		},
		Resources:    corev1.ResourceRequirements{Requests: small, Limits: small.DeepCopy()},
		VolumeMounts: []corev1.VolumeMount{{Name: waitTokenVolume, MountPath: waitTokenPath, ReadOnly: true}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no,
			ReadOnlyRootFilesystem:   &yes,
			RunAsNonRoot:             &yes,
			RunAsUser:                &user,
			RunAsGroup:               &user,
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	spec.InitContainers = append([]corev1.Container{wait}, spec.InitContainers...)
}

// StartAccess returns the Role and RoleBinding that allow the waiting containers of a set to read the objects they
// wait for. They apply to the service accounts of the cliques that wait for other cliques. If no clique waits, both
// are nil and must not exist.
func StartAccess(set *v1alpha1.PodCliqueSet) (*rbacv1.Role, *rbacv1.RoleBinding) {
	order := StartOrder(&set.Spec.Template)
	var accounts []string
	for _, c := range set.Spec.Template.CliquesInOrder() {
		if len(order.Requirements(set.Name, 0, c.Name, 0)) == 0 {
			continue
		}
		accounts = append(accounts, cmp.Or(c.Spec.PodSpec.ServiceAccountName, c.Spec.PodSpec.DeprecatedServiceAccount, "default"))
	}
	if len(accounts) == 0 {
		return nil, nil
	}
	slices.Sort(accounts)
	name := naming.StartRoleName(set.Name)
	role := &rbacv1.Role{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: objectMeta(set, v1alpha1.KindPodCliqueSet, name,
			naming.SetLabels(set.Name, set.Name, v1alpha1.ComponentPodRole), nil),
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{v1alpha1.GroupName},
			Resources: []string{"podcliques", "podcliquescalinggroups"},
			Verbs:     []string{"get", "list", "watch"},
		}},
	}
	binding := &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: objectMeta(set, v1alpha1.KindPodCliqueSet, name,
			naming.SetLabels(set.Name, set.Name, v1alpha1.ComponentPodRoleBinding), nil),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}
	for _, account := range slices.Compact(accounts) {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: set.Namespace})
	}
	return role, binding
}

// StartOrder returns the start order of a template.
func StartOrder(template *v1alpha1.PodCliqueSetTemplateSpec) lifecycle.StartOrder {
	o := lifecycle.StartOrder{GroupMinimum: map[string]int32{}}
	if t := template.StartupType; t != nil {
		o.InOrder, o.Explicit = *t == v1alpha1.CliqueStartupTypeInOrder, *t == v1alpha1.CliqueStartupTypeExplicit
	}
	for _, c := range template.CliquesInOrder() {
		ordered := lifecycle.OrderedClique{Name: c.Name, StartsAfter: c.Spec.StartsAfter}
		if g := template.ScalingGroupOf(c.Name); g != nil {
			ordered.Group = g.Name
			o.GroupMinimum[g.Name] = lifecycle.GroupMinimum(g.MinAvailable, 1)
		}
		o.Cliques = append(o.Cliques, ordered)
	}
	return o
}
