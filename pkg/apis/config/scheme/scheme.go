// SPDX-License-Identifier: Apache-2.0

// Package scheme adds the arguments of Muster's plugins to the stock scheduler's configuration scheme. Importing it
// is sufficient: kube-scheduler's own code then decodes a configuration file strictly (an unknown or duplicate field
// is an error), defaults it and converts it, with GangAdmissionArgs as one kind among the others.
package scheme

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubeconfigv1 "k8s.io/kube-scheduler/config/v1"
	kubeconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	kubescheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"github.com/muster-project/muster/pkg/apis/config"
	configv1 "github.com/muster-project/muster/pkg/apis/config/v1"
)

func init() {
	// kube-scheduler has two schemes. The scheme that decodes files was created when its package was initialized, so
	// the types are added to it here. The scheme that defaults and converts plugin arguments is created from the two
	// builders at its first use; using it here would exclude plugins whose init runs later.
	utilruntime.Must(AddToScheme(kubescheme.Scheme))
	kubeconfig.SchemeBuilder.Register(config.AddToScheme)
	kubeconfigv1.SchemeBuilder.Register(configv1.AddToScheme)
}

// AddToScheme registers all versions of the plugins' arguments.
func AddToScheme(scheme *runtime.Scheme) error {
	if err := config.AddToScheme(scheme); err != nil {
		return err
	}
	return configv1.AddToScheme(scheme)
}
