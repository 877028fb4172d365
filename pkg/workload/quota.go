// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// quotaExceeded matches the part of an error of the API server about one ResourceQuota that a new object would exceed,
// with the resources of which there are too few. Source: k8s.io/apiserver, pkg/admission/plugin/resourcequota.
var quotaExceeded = regexp.MustCompile(`exceeded quota: [^,]*, requested: (\S*), used: (\S*), limited: (\S*)`)

// FitsQuotaAfter reports whether a pod that the API server rejects with this message, because a ResourceQuota would be
// exceeded, would be accepted if gone did not exist, and with also created beside it: a pod is created after the pods
// that it replaces are gone, but the API server is asked before. It returns false for any other message. The API server
// names only the first quota that is exceeded. gone must count towards that quota.
func FitsQuotaAfter(message string, gone, also []*corev1.Pod) bool {
	quotas := quotaExceeded.FindAllStringSubmatch(message, -1)
	for _, quota := range quotas {
		requested, used, limited := quantities(quota[1]), quantities(quota[2]), quantities(quota[3])
		for name, sum := range requested {
			limit, known := limited[name]
			if _, counted := used[name]; !known || !counted {
				return false
			}
			sum.Add(used[name])
			for _, pod := range also {
				sum.Add(quotaUsage(pod, name))
			}
			for _, pod := range gone {
				sum.Sub(quotaUsage(pod, name))
			}
			if sum.Cmp(limit) > 0 {
				return false
			}
		}
		if len(requested) == 0 {
			return false
		}
	}
	return len(quotas) > 0
}

// quantities returns the quantities in a text like requests.cpu=2,pods=1, by name. Parts that are none are left out.
func quantities(text string) map[string]resource.Quantity {
	quantities := map[string]resource.Quantity{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		if quantity, err := resource.ParseQuantity(value); err == nil {
			quantities[name] = quantity
		}
	}
	return quantities
}

// quotaUsage returns how much a pod counts in a ResourceQuota for the resource with the given name there.
func quotaUsage(pod *corev1.Pod, name string) resource.Quantity {
	if name == "pods" || name == "count/pods" {
		return *resource.NewQuantity(1, resource.DecimalSI)
	}
	if limit, ok := strings.CutPrefix(name, "limits."); ok {
		return resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})[corev1.ResourceName(limit)]
	}
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})[corev1.ResourceName(strings.TrimPrefix(name, "requests."))]
}
