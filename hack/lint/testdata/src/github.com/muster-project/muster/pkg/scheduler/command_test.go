package scheduler

import (
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func TestName(t *testing.T) { t.Log(framework.Name) }
