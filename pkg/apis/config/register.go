// SPDX-License-Identifier: Apache-2.0

package config

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// GroupName is the stock scheduler's configuration group. kube-scheduler does not decode plugin arguments of another
// group, or of a kind that is not named "<plugin>Args".
const GroupName = kubeconfig.GroupName

// SchemeGroupVersion is the internal version, which plugins receive.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}

// AddToScheme registers the internal types.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &GangAdmissionArgs{})
	return nil
}
