// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-project/muster/pkg/apis/config"
)

// SchemeGroupVersion is the version used in configuration files.
var SchemeGroupVersion = schema.GroupVersion{Group: config.GroupName, Version: "v1"}

// AddToScheme registers the types of this version, their defaults, and their conversion from and to the internal ones.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &GangAdmissionArgs{})
	scheme.AddTypeDefaultingFunc(&GangAdmissionArgs{}, func(obj any) {
		SetDefaults_GangAdmissionArgs(obj.(*GangAdmissionArgs))
	})
	return addConversionFuncs(scheme)
}
