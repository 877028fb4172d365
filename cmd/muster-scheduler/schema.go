// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/scheduler/report"
)

const (
	schemaPoll = 2 * time.Second
	// schemaWait is how long a schema that cannot be read holds up the start: without an answer it is taken to fit.
	schemaWait = 20 * time.Second
)

// informersWithSchema are the scheduler's informers, which are not in sync before PodGroups have Muster's schema. Until then
// /readyz fails and nothing is scheduled, and /healthz is served: beside a CRD of the same name of another product gangs would
// be read without the fields that were pruned.
type informersWithSchema struct {
	informers.SharedInformerFactory
	check func(ctx context.Context) error
}

// WaitForCacheSync implements informers.SharedInformerFactory.
func (f informersWithSchema) WaitForCacheSync(stop <-chan struct{}) map[reflect.Type]bool {
	waitForSchema(wait.ContextForChannel(stop), f.check, schemaPoll, schemaWait)
	return f.SharedInformerFactory.WaitForCacheSync(stop)
}

// waitForSchema returns when the schema of PodGroups fits, or cannot be read for so long, or ctx ends.
func waitForSchema(ctx context.Context, check func(ctx context.Context) error, poll, unread time.Duration) {
	logger := klog.FromContext(ctx)
	waited, told := time.Duration(0), ""
	_ = wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		switch {
		case err == nil:
			if told != "" {
				logger.Info("PodGroups have the schema of Muster now")
			}
			return true, nil
		case errors.Is(err, report.ErrForeignSchema):
			waited = 0
			if told != err.Error() {
				told = err.Error()
				logger.Error(err, "muster-scheduler is not ready and schedules nothing until the CRD is replaced by the one in manifests/crds; another product that needs its own cannot run in this cluster beside Muster")
			}
		default:
			if waited += poll; waited >= unread {
				logger.Error(err, "The schema of PodGroups is unknown; it is taken to be that of Muster")
				return true, nil
			}
		}
		return false, nil
	})
}
