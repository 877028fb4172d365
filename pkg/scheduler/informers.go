// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/scheduler/report"
	"github.com/muster-project/muster/pkg/version"
)

const (
	apiServerPoll    = 250 * time.Millisecond
	apiServerTimeout = 3 * time.Second // of one request
	// apiServerUnready is how long an API server that says that it is not ready holds up the start.
	apiServerUnready = 20 * time.Second

	schemaPoll = 2 * time.Second
	// schemaWait is how long a schema that cannot be read holds up the start: without an answer it is taken to fit.
	schemaWait = 20 * time.Second
)

// lateInformers are the scheduler's informers. They start when the API server answers, and are not in sync before
// PodGroups have Muster's schema: beside a CRD of the same name of another product gangs would be read without the
// fields that were pruned. Until then /readyz fails and nothing is scheduled, and /healthz is served.
type lateInformers struct {
	informers.SharedInformerFactory
	answers <-chan struct{} // closed when the API server answers
	check   func(ctx context.Context) error
}

// Start implements informers.SharedInformerFactory.
func (f lateInformers) Start(stop <-chan struct{}) {
	select {
	case <-f.answers:
	case <-stop:
	}
	f.SharedInformerFactory.Start(stop)
}

// WaitForCacheSync implements informers.SharedInformerFactory.
func (f lateInformers) WaitForCacheSync(stop <-chan struct{}) map[reflect.Type]bool {
	waitForSchema(wait.ContextForChannel(stop), f.check, schemaPoll, schemaWait)
	return f.SharedInformerFactory.WaitForCacheSync(stop)
}

// waitForAPIServer returns when the API server is ready, or has answered for the time unready that it is not, or ctx
// ends. Informers that meet an API server that is away retry after up to 30 seconds; a gang that a crash left bound in
// part would wait for them.
func waitForAPIServer(ctx context.Context, server rest.Interface, poll, unready time.Duration) {
	ask := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, apiServerTimeout)
		defer cancel()
		err := server.Get().AbsPath("/readyz").MaxRetries(0).Do(ctx).Error()
		if refuses(err) {
			return nil
		}
		return err
	}
	answers := func(err error) bool {
		status := apierrors.APIStatus(nil)
		return errors.As(err, &status)
	}
	pollAPIServer(ctx, "Waiting for the API server to be ready", poll, unready, ask, answers)
}

// waitForGate returns the feature gate that the API server does not serve, "" if there is none, as soon as ask says it
// (kubescheduler.UnservedGate), or ctx ends. An API server that has just started may refuse to answer, since it has not
// read its own roles; one that refuses for the time unready is taken to serve all.
func waitForGate(ctx context.Context, ask func() (featuregate.Feature, error), poll, unready time.Duration) (gate featuregate.Feature) {
	pollAPIServer(ctx, "Waiting for the API server to say what it serves", poll, unready, func(context.Context) (err error) {
		gate, err = ask()
		return err
	}, refuses)
	return gate
}

// refuses reports whether the API server has refused a request for lack of rights.
func refuses(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// pollAPIServer asks until there is no error, or errors that count have come for the time enough, or ctx ends. The
// first error is logged with the message.
func pollAPIServer(ctx context.Context, message string, poll, enough time.Duration, ask func(context.Context) error, counts func(error) bool) {
	logged, counted := false, time.Duration(0)
	_ = wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		err := ask(ctx)
		if err == nil {
			return true, nil
		}
		if !logged {
			logged = true
			klog.FromContext(ctx).Info(message, "reason", err)
		}
		if counts(err) {
			counted += poll
		}
		return counted >= enough, nil
	})
}

// logServerSkew logs if Muster is not made for the version of the API server.
func logServerSkew(logger klog.Logger, server discovery.ServerVersionInterface) {
	info, err := server.ServerVersion()
	if err != nil {
		return // what needs the API server says so
	}
	if skew, _ := version.ServerSkew(info.GitVersion); skew != "" {
		logger.Info("The API server "+skew, "version", info.GitVersion)
	}
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
