// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	grovev1alpha1 "github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
	"github.com/muster-project/muster/pkg/message"
)

// servedKinds are the resources of the CRDs that belong together, by the version that the programs use.
var servedKinds = []struct {
	version string
	needed  bool // by muster-scheduler; the others are needed for PodCliqueSets, or for named levels
	names   []string
}{
	{v2alpha2.SchemeGroupVersion.String(), true, []string{"podgroups"}},
	{grovev1alpha1.SchemeGroupVersion.String(), false, []string{"clustertopologybindings", "podcliques", "podcliquescalinggroups", "podcliquesets"}},
	{topologyv1alpha1.SchemeGroupVersion.String(), false, []string{"topologies"}},
}

// checkVersions checks that the API server serves the CRDs in the versions that this program, and those of its version,
// use.
func (d *Doctor) checkVersions(client kubernetes.Interface) {
	const name = "CRDs"
	var served []string
	for _, k := range servedKinds {
		list, err := client.Discovery().ServerResourcesForGroupVersion(k.version)
		if apierrors.IsNotFound(err) && !k.needed {
			continue
		}
		if err != nil && !apierrors.IsNotFound(err) {
			d.add(name, stateUnknown, fmt.Sprintf("what is served of %s could not be read: %v", k.version, err))
			return
		}
		missing := slices.Clone(k.names)
		if list != nil {
			missing = slices.DeleteFunc(missing, func(name string) bool {
				return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
			})
		}
		if len(missing) > 0 {
			d.add(name, stateProblem, fmt.Sprintf("the API server does not serve %s in %s: apply the CRDs of this version", strings.Join(missing, ", "), k.version))
			return
		}
		served = append(served, k.version)
	}
	d.add(name, stateOK, "the API server serves "+strings.Join(served, ", "))
}

// unneededRule returns which of its shipped rules muster-controller does not need: if another program manages the
// certificate of the webhooks, those about it. nil: its Deployment is not known.
func unneededRule(controller *appsv1.Deployment) func(rbacv1.PolicyRule) bool {
	if controller == nil {
		return noRule
	}
	management := arguments(controller, "--cert-management")
	if len(management) == 0 || management[len(management)-1] != "external" {
		return noRule
	}
	return func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Resources, "secrets") || slices.Contains(rule.APIGroups, "admissionregistration.k8s.io")
	}
}

func noRule(rbacv1.PolicyRule) bool { return false }

// checkRights checks that the roles of a program grant what those of this version do, except unneeded rules, and are
// bound to its account.
func (d *Doctor) checkRights(ctx context.Context, client kubernetes.Interface, program string, shipped []byte, unneeded func(rbacv1.PolicyRule) bool) {
	name := "rights of " + program
	shipped = bytes.ReplaceAll(shipped, []byte("namespace: "+musterNamespace), []byte("namespace: "+d.in()))
	problems, err := rightsProblems(ctx, client, shipped, unneeded)
	switch {
	case apierrors.IsForbidden(err):
		d.add(name, stateUnknown, "you may not read roles and their bindings")
	case err != nil:
		d.add(name, stateUnknown, fmt.Sprintf("they could not be read: %v", err))
	case len(problems) > 0:
		d.add(name, stateProblem, strings.Join(problems, "; ")+": apply the manifests of this version")
	default:
		d.add(name, stateOK, "all that it needs")
	}
}

// rightsProblems returns what is missing in the cluster of the roles and bindings of a file, except unneeded rules.
func rightsProblems(ctx context.Context, client kubernetes.Interface, shipped []byte, unneeded func(rbacv1.PolicyRule) bool) ([]string, error) {
	var problems []string
	for _, document := range strings.Split(string(shipped), "\n---\n") {
		var role rbacv1.Role // a ClusterRole has the same fields
		var binding rbacv1.RoleBinding
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal([]byte(document), &binding); err != nil {
			return nil, err
		}
		what := role.Kind + " " + role.Name
		if role.Namespace != "" {
			what = role.Kind + " " + role.Namespace + "/" + role.Name
		}
		var rules []rbacv1.PolicyRule
		var subjects []rbacv1.Subject
		var of rbacv1.RoleRef
		var err error
		switch role.Kind {
		case "ClusterRole":
			var got *rbacv1.ClusterRole
			if got, err = client.RbacV1().ClusterRoles().Get(ctx, role.Name, metav1.GetOptions{}); err == nil {
				rules = got.Rules
			}
		case "Role":
			var got *rbacv1.Role
			if got, err = client.RbacV1().Roles(role.Namespace).Get(ctx, role.Name, metav1.GetOptions{}); err == nil {
				rules = got.Rules
			}
		case "ClusterRoleBinding":
			var got *rbacv1.ClusterRoleBinding
			if got, err = client.RbacV1().ClusterRoleBindings().Get(ctx, role.Name, metav1.GetOptions{}); err == nil {
				subjects, of = got.Subjects, got.RoleRef
			}
		case "RoleBinding":
			var got *rbacv1.RoleBinding
			if got, err = client.RbacV1().RoleBindings(role.Namespace).Get(ctx, role.Name, metav1.GetOptions{}); err == nil {
				subjects, of = got.Subjects, got.RoleRef
			}
		}
		if apierrors.IsNotFound(err) {
			problems = append(problems, what+" does not exist")
			continue
		}
		if err != nil {
			return nil, err
		}
		if missing := missingRights(slices.DeleteFunc(role.Rules, unneeded), rules); len(missing) > 0 {
			problems = append(problems, fmt.Sprintf("%s does not grant %s", what, message.ListNames(missing, maxListed, len(missing), ", ")))
		}
		if of != binding.RoleRef {
			problems = append(problems, fmt.Sprintf("%s is of %s %s", what, of.Kind, of.Name))
		}
		for _, subject := range binding.Subjects {
			if !slices.Contains(subjects, subject) {
				problems = append(problems, fmt.Sprintf("%s is not for %s %s/%s", what, subject.Kind, subject.Namespace, subject.Name))
			}
		}
	}
	return problems, nil
}

// missingRights returns what of the first rules the second do not grant: "patch pods/status".
func missingRights(want, have []rbacv1.PolicyRule) []string {
	var missing []string
	for _, rule := range want {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						if slices.ContainsFunc(have, func(r rbacv1.PolicyRule) bool { return grants(&r, group, resource, verb, name) }) {
							continue
						}
						text := verb + " " + strings.TrimSuffix(resource+"."+group, ".")
						if name != "" {
							text += " " + name
						}
						missing = append(missing, text)
					}
				}
			}
		}
	}
	return missing
}

// grants reports whether a rule grants a verb on a resource, of one object if a name is given.
func grants(r *rbacv1.PolicyRule, group, resource, verb, name string) bool {
	has := func(all []string, one string) bool { return slices.Contains(all, one) || slices.Contains(all, "*") }
	return has(r.APIGroups, group) && has(r.Resources, resource) && has(r.Verbs, verb) && (len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name))
}
