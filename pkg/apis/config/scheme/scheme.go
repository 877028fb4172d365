// Package scheme adds the arguments of Muster's plugins to the stock scheduler's configuration scheme. Importing it is
// enough: a configuration file is then decoded strictly (an unknown or duplicate field is an error), defaulted and
// converted by kube-scheduler's own code, with GangAdmissionArgs as one kind among the others.
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
	// kube-scheduler has two schemes. The one that decodes files was made when its package was initialised, so the
	// types are added to it here. The one that defaults and converts plugin arguments is made from the two builders
	// when it is first needed; asking for it now would leave out plugins whose init comes later.
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
