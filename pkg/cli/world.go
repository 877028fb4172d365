// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/muster-project/muster/pkg/advice"
	"github.com/muster-project/muster/pkg/apis/config/profile"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangadmission"
	"github.com/muster-project/muster/pkg/snapshot"
	"github.com/muster-project/muster/pkg/version"
)

// world is the cluster that a command is about.
type world struct {
	*advice.Cluster
	snapshot *snapshot.Snapshot
	pods     []*corev1.Pod
	claims   map[types.NamespacedName]*resourcev1.ResourceClaim // nil: as in the snapshot
	sets     map[types.UID]*SetState                            // of PodCliqueSets that were asked for
}

// restConfig returns how the API server is reached.
func (o *options) restConfig() (*rest.Config, error) {
	config, err := o.config().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	config.UserAgent = "kubectl-muster/" + version.Version
	return config, nil
}

// read returns what the scheduler reads of the cluster, or the snapshot of --snapshot.
func (o *options) read(ctx context.Context) (*snapshot.Snapshot, error) {
	if o.snapshot == "" {
		config, err := o.restConfig()
		if err != nil {
			return nil, err
		}
		return snapshot.Take(ctx, config, version.String(), o.now())
	}
	file := io.NopCloser(o.In)
	if o.snapshot != "-" {
		f, err := os.Open(o.snapshot)
		if err != nil {
			return nil, err
		}
		if info, err := f.Stat(); err == nil && info.Size() > snapshot.MaxFile {
			_ = f.Close()
			return nil, fmt.Errorf("reading snapshot %s: it has %d MiB: no snapshot is that large", o.snapshot, info.Size()>>20)
		}
		file = f
	}
	defer file.Close()
	s, err := snapshot.Read(file)
	if err != nil {
		return nil, fmt.Errorf("reading snapshot %s: %w", o.snapshot, err)
	}
	return s, nil
}

// completionLimit is how long a completion waits for the API server.
const completionLimit = 3 * time.Second

// names returns the names of the objects of a resource ("podgroups.scheduling.run.ai") in a namespace; "": everywhere.
func (o *options) names(ctx context.Context, resource, namespace string) ([]string, error) {
	if o.snapshot != "" {
		s, err := o.read(ctx)
		if err != nil {
			return nil, err
		}
		return s.Names(resource, namespace), nil
	}
	config, err := o.restConfig()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, completionLimit)
	defer cancel()
	return snapshot.ReadNames(ctx, config, resource, namespace)
}

// newWorld returns the world of a snapshot. It uses resources until ctx ends.
func newWorld(ctx context.Context, s *snapshot.Snapshot) (*world, error) {
	config, err := profile.Default()
	if err != nil {
		return nil, err
	}
	unread := ""
	if why := s.IsUnread("topologies.kai.scheduler"); why != "" && why != snapshot.WhyMissing {
		unread = "allow yourself to list topologies.kai.scheduler"
	}
	offline, err := gangadmission.NewOffline(ctx, gangadmission.OfflineInput{Config: config, Objects: withoutUnreadClasses(s), UnreadTopologies: unread, Read: s.Taken})
	if err != nil {
		return nil, err
	}
	w := &world{snapshot: s, pods: snapshot.All[*corev1.Pod](s), sets: map[types.UID]*SetState{}}
	w.Cluster = advice.NewCluster(offline, snapshot.All[*corev1.Node](s), w.pods, snapshot.All[*schedulingv1.PriorityClass](s))
	return w, nil
}

// withoutUnreadClasses returns the objects of a snapshot. If PriorityClasses could not be listed, PodGroups name none:
// it is not known that theirs do not exist.
func withoutUnreadClasses(s *snapshot.Snapshot) []runtime.Object {
	if s.IsUnread("priorityclasses."+schedulingv1.GroupName) == "" {
		return s.Objects
	}
	objects := slices.Clone(s.Objects)
	for i := range objects {
		if group, ok := objects[i].(*v2alpha2.PodGroup); ok && group.Spec.PriorityClassName != "" {
			group = group.DeepCopy()
			group.Spec.PriorityClassName = ""
			objects[i] = group
		}
	}
	return objects
}

// world reads the cluster and returns it.
func (o *options) world(ctx context.Context) (*world, error) {
	s, err := o.read(ctx)
	if err != nil {
		return nil, err
	}
	w, err := newWorld(ctx, s)
	if err == nil {
		o.warnUnread(s)
	}
	return w, err
}

// warnUnread says what is not known because of missing rights.
func (o *options) warnUnread(s *snapshot.Snapshot) {
	for _, u := range s.Unread {
		if u.Why != snapshot.WhyMissing {
			o.complain("warning", fmt.Sprintf("%s could not be listed (%s): answers are given without %s", u.Resource, u.Why, u.Without))
		}
	}
}
